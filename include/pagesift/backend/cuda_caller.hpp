// How the CUDA driver is called: what all calls of the CUDA backend have in common.
#pragma once

#include <pagesift/backend/cuda_driver.hpp>
#include <pagesift/backend/cuda_guard.hpp>
#include <pagesift/core/status.hpp>

#include <cstddef>

namespace pagesift {
inline namespace PAGESIFT_CUDA_NAMESPACE {

/// Names one device and makes calls in its primary context.
class cuda_caller {
 public:
  /// The device's number.
  [[nodiscard]] int device() const noexcept { return device_; }

 protected:
  cuda_caller(const cuda_driver& driver, int device, CUcontext context) noexcept
      : driver_{&driver}, device_{device}, context_{context} {}

  template <typename Call>
  status in_context(const char* name, Call&& call) const noexcept {
    const cuda_context_guard context{*driver_, context_};
    return cuda_status(context.result() == CUDA_SUCCESS ? call() : context.result(), name);
  }

  /// For calls that would end a capture.
  template <typename Call>
  status beside_captures(const char* name, Call&& call) const noexcept {
    return in_context(name, [&] {
      const cuda_capture_guard relaxed{*driver_};
      return call();
    });
  }

  const cuda_driver* driver_;
  int device_;
  CUcontext context_;
  std::size_t total_bytes_ = 0;  // of memory that the device has
};

}  // namespace PAGESIFT_CUDA_NAMESPACE
}  // namespace pagesift
