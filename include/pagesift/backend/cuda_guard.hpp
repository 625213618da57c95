// Scopes that change something about the calling thread and put it back.
#pragma once

#include <pagesift/backend/cuda_driver.hpp>

namespace pagesift {
inline namespace PAGESIFT_CUDA_NAMESPACE {

/// Makes `context` the calling thread's current one, and with it the current device, while it
/// lives. Costs 10 ns where `context` is current already.
class cuda_context_guard {
 public:
  cuda_context_guard(const cuda_driver& driver, CUcontext context) noexcept : driver_{driver} {
    CUcontext current = nullptr;
    result_ = driver_.ctx_get_current(&current);
    if (result_ == CUDA_SUCCESS && current != context) {
      result_ = driver_.ctx_push_current(context);
      pushed_ = result_ == CUDA_SUCCESS;
    }
  }

  ~cuda_context_guard() {
    if (pushed_) {
      CUcontext popped = nullptr;
      (void)driver_.ctx_pop_current(&popped);
    }
  }

  cuda_context_guard(const cuda_context_guard&) = delete;
  cuda_context_guard& operator=(const cuda_context_guard&) = delete;

  /// Anything but success: `context` is not current.
  [[nodiscard]] CUresult result() const noexcept { return result_; }

  /// What `call` returns; where `context` is not current, it is not made.
  template <typename Call>
  [[nodiscard]] CUresult run(Call&& call) const {
    return result_ == CUDA_SUCCESS ? call() : result_;
  }

 private:
  const cuda_driver& driver_;
  CUresult result_;
  bool pushed_ = false;
};

/// While it lives, calls of this thread that CUDA forbids during a stream capture (cuMemAlloc,
/// cuMemFree, cuEventQuery, cuEventSynchronize) are allowed and leave every capture valid, in
/// whatever thread and mode it runs. Costs about 80 ns.
class cuda_capture_guard {
 public:
  explicit cuda_capture_guard(const cuda_driver& driver) noexcept
      : driver_{driver}, result_{driver.exchange_capture_mode(&mode_)} {}

  ~cuda_capture_guard() {
    if (result_ == CUDA_SUCCESS) {
      (void)driver_.exchange_capture_mode(&mode_);
    }
  }

  cuda_capture_guard(const cuda_capture_guard&) = delete;
  cuda_capture_guard& operator=(const cuda_capture_guard&) = delete;

  /// What `call` returns; where the thread could not be excepted from captures, it is not made.
  template <typename Call>
  [[nodiscard]] CUresult run(Call&& call) const {
    return result_ == CUDA_SUCCESS ? call() : result_;
  }

 private:
  const cuda_driver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUresult result_;
};

}  // namespace PAGESIFT_CUDA_NAMESPACE
}  // namespace pagesift
