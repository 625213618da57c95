// How the CUDA driver is called: what all calls of the CUDA backend have in common.
#pragma once

#include <pagesift/backend/cuda_driver.hpp>
#include <pagesift/backend/cuda_guard.hpp>
#include <pagesift/core/status.hpp>

#include <cstddef>

namespace pagesift {
inline namespace PAGESIFT_CUDA_NAMESPACE {

/// A device's primary context. A reset of the device leaves the handle as it is and changes the id,
/// which never repeats.
struct cuda_primary_context {
  CUcontext handle = nullptr;
  unsigned long long id = 0;
};

/// Names one device and makes calls in its primary context.
class cuda_caller {
 public:
  /// The device's number.
  [[nodiscard]] int device() const noexcept { return device_; }

  /// Whether the device was reset (cudaDeviceReset) since the context was opened. Costs 10 ns on an
  /// H200. Until somebody uses the runtime again the context counts as destroyed, then it has
  /// another id. Another failure is no reset: what is called next will say what is wrong.
  [[nodiscard]] bool is_reset() const noexcept {
    unsigned long long id = 0;
    const CUresult result = driver_->ctx_get_id(context_, &id);
    return result == CUDA_SUCCESS
               ? id != context_id_
               : result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT;
  }

 protected:
  cuda_caller(const cuda_driver& driver, int device, const cuda_primary_context& context) noexcept
      : driver_{&driver}, device_{device}, context_{context.handle}, context_id_{context.id} {}

  /// Not after a reset: the driver crashes on some of what a reset has destroyed.
  template <typename Call>
  status in_context(const char* name, Call&& call) const noexcept {
    if (is_reset()) {
      return cuda_status(CUDA_ERROR_CONTEXT_IS_DESTROYED, name);
    }
    const cuda_context_guard context{*driver_, context_};
    return cuda_status(context.run(call), name);
  }

  /// For calls that would end a capture; not made where the thread cannot be excepted from that.
  template <typename Call>
  status beside_captures(const char* name, Call&& call) const noexcept {
    return in_context(name, [&] {
      const cuda_capture_guard relaxed{*driver_};
      return relaxed.run(call);
    });
  }

  const cuda_driver* driver_;
  int device_;
  CUcontext context_;
  unsigned long long context_id_;
  std::size_t total_bytes_ = 0;  // of memory that the device has
};

}  // namespace PAGESIFT_CUDA_NAMESPACE
}  // namespace pagesift
