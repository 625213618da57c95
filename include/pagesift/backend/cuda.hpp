// The CUDA backend: device memory, CUDA's events, streams known by id.
#pragma once

#include <pagesift/backend/backend.hpp>
#include <pagesift/backend/cuda_announcer.hpp>
#include <pagesift/backend/cuda_captures.hpp>
#include <pagesift/backend/cuda_driver.hpp>
#include <pagesift/backend/cuda_fence.hpp>
#include <pagesift/backend/cuda_guard.hpp>
#include <pagesift/backend/memory_contents.hpp>
#include <pagesift/backend/memory_place.hpp>
#include <pagesift/backend/stream_capture.hpp>
#include <pagesift/backend/virtual_memory.hpp>
#include <pagesift/core/error.hpp>
#include <pagesift/core/inlining.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <string>

namespace pagesift {

/// Id of a device's legacy default stream, far from the driver's ids, which count upwards from
/// small numbers, and from the pool's own.
inline constexpr stream_id legacy_stream_id = stream_id{1} << 63;

inline namespace PAGESIFT_CUDA_NAMESPACE {

/// Memory, streams and events of one device, in its primary context, the one the CUDA runtime uses.
///
/// A null stream is the device's default stream: the legacy one, or the calling thread's own with
/// CUDA_API_PER_THREAD_DEFAULT_STREAM. Streams must belong to the device; which device is current
/// does not matter. Calls may be made from any thread. They are the driver's (see cuda_driver.hpp),
/// so they leave the runtime's last error as it was; they leave the current device as it was; and
/// they leave every stream capture valid.
class cuda_backend : public cuda_captures {
 public:
  using stream_type = cudaStream_t;
  using event_type = cudaEvent_t;
#ifdef PAGESIFT_HAS_NVTX_MEMORY
  using announcer_type = cuda_announcer;
#endif

  static constexpr const char* memory_name = "device memory";

  /// The calling thread's current device. \throws backend_error where there is no driver or device,
  /// fork_error in a child forked from a process that had opened the driver.
  [[nodiscard]] static int current_device();

  /// The backend of `device`; -1 is the current one. Retains the device's primary context for the
  /// life of the process, as the CUDA runtime does.
  /// \throws backend_error where there is no driver or device, or the driver is too old;
  /// invalid_argument where there is no such device; fork_error as `current_device`.
  [[nodiscard]] static cuda_backend open(int device);

  /// What pools of a device's memory compete for.
  [[nodiscard]] static memory_place place_of_device(int device) noexcept {
    return {"cuda", static_cast<std::uintptr_t>(device)};
  }
  [[nodiscard]] memory_place place() const noexcept { return place_of_device(device()); }

  /// Takes `bytes` bytes from the device, as cudaMalloc does. More than the device has in all is a
  /// shortage without asking.
  status acquire(std::size_t bytes, void*& p) const noexcept {
    CUdeviceptr address = 0;
    const status result = beside_captures("cuMemAlloc", [&] {
      return bytes > total_bytes_ ? CUDA_ERROR_OUT_OF_MEMORY : driver_->mem_alloc(&address, bytes);
    });
    p = reinterpret_cast<void*>(address);
    return result;
  }

  /// Gives memory back, as cudaFree does: that waits for all kernels running on the device.
  status release(void* p, std::size_t) const noexcept {
    return beside_captures("cuMemFree",
                           [&] { return driver_->mem_free(reinterpret_cast<CUdeviceptr>(p)); });
  }

  /// Memory of the device. Where CUDA cannot tell any more, none is free and the total is as it
  /// was: whatever is tried next will say what is wrong.
  [[nodiscard]] memory_info memory() const noexcept {
    memory_info info;
    return query_memory(info).ok() ? info : memory_info{0, total_bytes_};
  }

  /// Identity of a stream. The legacy default stream cannot capture. After a reset it fails for
  /// every stream: the driver crashes on some of the old ones.
  [[nodiscard]] stream_state inspect(stream_type stream) const noexcept {
    if (is_reset()) {
      return {cuda_status(CUDA_ERROR_CONTEXT_IS_DESTROYED, "cuCtxGetId"), 0, false, false};
    }
    const CUstream handle = explicit_stream(stream);
    if (handle == CU_STREAM_LEGACY) {
      return {status{}, legacy_stream_id, false, false};
    }
    if (handle != CU_STREAM_PER_THREAD) {
      const stream_state state = identify(handle);
      if (state.result.code != CUDA_ERROR_INVALID_CONTEXT) {
        return state;
      }
    }
    return identify_in_context(handle);
  }

  /// The id alone, so that it stays in a register: a struct put together from the driver's answers
  /// costs as much as one of them. The legacy default stream is the same after a reset, so there
  /// the context is asked; a created stream says itself that it is gone, or has another id.
  [[nodiscard]] PAGESIFT_ALWAYS_INLINE bool get_id_unless_capturing(stream_type stream,
                                                                    stream_id& id) const noexcept {
    const CUstream handle = explicit_stream(stream);
    if (handle == CU_STREAM_LEGACY) {
      id = legacy_stream_id;
      return !is_reset();
    }
    if (handle != CU_STREAM_PER_THREAD && says_not_capturing(handle)) {
      unsigned long long answer = 0;
      if (driver_->stream_get_id(handle, &answer) == CUDA_SUCCESS) {
        id = answer;
        return true;
      }
    }
    return get_inspected_id(stream, id);
  }

  [[nodiscard]] PAGESIFT_ALWAYS_INLINE bool is_not_capturing(stream_type stream) const noexcept {
    const CUstream handle = explicit_stream(stream);
    if (handle == CU_STREAM_LEGACY) {
      return !is_reset();
    }
    return (handle != CU_STREAM_PER_THREAD && says_not_capturing(handle)) ||
           inspected_as_not_capturing(stream);
  }

  /// An event that keeps no time. It starts complete.
  status create_event(event_type& event) const noexcept {
    return in_context("cuEventCreate",
                      [&] { return driver_->event_create(&event, CU_EVENT_DISABLE_TIMING); });
  }

  status destroy_event(event_type event) const noexcept {
    return beside_captures("cuEventDestroy", [&] { return driver_->event_destroy(event); });
  }

  /// Precondition: `stream` is not capturing. On the legacy default stream it fails, with
  /// cudaErrorStreamCaptureImplicit and nothing done, while a stream that synchronises with that
  /// one is capturing.
  status record(event_type event, stream_type stream) const noexcept {
    return on_stream("cuEventRecord", stream,
                     [&](CUstream handle) { return driver_->event_record(event, handle); });
  }

  /// Precondition and failure as for `record`.
  status wait(stream_type stream, event_type event) const noexcept {
    return on_stream("cuStreamWaitEvent", stream, [&](CUstream handle) {
      return driver_->stream_wait_event(handle, event, CU_EVENT_WAIT_DEFAULT);
    });
  }

  status query(event_type event) const noexcept {
    return beside_captures("cuEventQuery", [&] { return driver_->event_query(event); });
  }

  status synchronize(event_type event) const noexcept {
    return beside_captures("cuEventSynchronize", [&] { return driver_->event_synchronize(event); });
  }

  /// Waits for all work of the device. A shortage of memory for that is possible where there was
  /// none after the last fence: nothing was waited for then.
  status fence() const noexcept { return fence_->wait(); }

  [[nodiscard]] std::string describe(int code) const { return cuda_error_text(code); }

  // Beyond the concept: what a buffer of this backend's memory needs.

  /// Copies `bytes` bytes of host memory to the device, after the work submitted to `stream` so
  /// far; done when it returns. Refused on a capturing stream, whose capture stays valid.
  status copy_to_device(void* device, const void* host, std::size_t bytes,
                        stream_type stream) const noexcept {
    return copy("cuMemcpyHtoDAsync", stream, [&](CUstream handle) {
      return driver_->copy_host_to_device(reinterpret_cast<CUdeviceptr>(device), host, bytes,
                                          handle);
    });
  }

  /// The other way round.
  status copy_to_host(void* host, const void* device, std::size_t bytes,
                      stream_type stream) const noexcept {
    return copy("cuMemcpyDtoHAsync", stream, [&](CUstream handle) {
      return driver_->copy_device_to_host(host, reinterpret_cast<CUdeviceptr>(device), bytes,
                                          handle);
    });
  }

  // For those who look for mistakes (see memory_contents.hpp).

  /// Fills memory after the work submitted to `stream` so far; does not wait. Refused on a
  /// capturing stream, whose capture stays valid.
  status fill(void* p, unsigned char byte, std::size_t bytes, stream_type stream) const noexcept {
    return submit("cuMemsetD8Async", stream, [&](CUstream handle) {
      return driver_->fill_bytes(reinterpret_cast<CUdeviceptr>(p), byte, bytes, handle);
    });
  }

  /// Whether the stream belongs to another device. False where CUDA does not tell. A default
  /// stream's handle means this device's here. Precondition: it is not capturing.
  [[nodiscard]] bool is_elsewhere(stream_type stream) const noexcept {
    const CUstream handle = explicit_stream(stream);
    CUcontext context = nullptr;
    if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD ||
        driver_->stream_get_context(handle, &context) != CUDA_SUCCESS || context == context_) {
      return false;
    }
    const cuda_context_guard current{*driver_, context};
    CUdevice device = 0;
    return current.result() == CUDA_SUCCESS && driver_->ctx_get_device(&device) == CUDA_SUCCESS &&
           device != device_;
  }

 private:
  cuda_backend(const cuda_driver& driver, int device, const cuda_primary_context& context)
      : cuda_captures{driver, device, context}, fence_{std::make_shared<cuda_fence>(*this)} {}

  static int device_count(const cuda_driver& driver);
  static cuda_primary_context retain_context(const cuda_driver& driver, int device);

  /// For calls that submit work. Work on the legacy default stream would end the capture of any
  /// stream that synchronises with it; asking is harmless.
  template <typename Call>
  status on_stream(const char* name, stream_type stream, Call&& call) const noexcept {
    const CUstream handle = explicit_stream(stream);
    return in_context(name, [&] {
      CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
      const CUresult usable = handle == CU_STREAM_LEGACY
                                  ? driver_->stream_is_capturing(handle, &capture)
                                  : CUDA_SUCCESS;
      return usable == CUDA_SUCCESS ? call(handle) : usable;
    });
  }

  /// For copies between host and device: submits one and waits for it.
  template <typename Call>
  status copy(const char* name, stream_type stream, Call&& call) const noexcept {
    return submit(name, stream, [&](CUstream handle) {
      const CUresult submitted = call(handle);
      return submitted == CUDA_SUCCESS ? driver_->stream_synchronize(handle) : submitted;
    });
  }

  /// For work on memory that no capture is to hold.
  template <typename Call>
  status submit(const char* name, stream_type stream, Call&& call) const noexcept {
    const stream_state state = inspect(stream);
    if (!state.result.ok() || state.capturing) {
      return state.capturing ? cuda_status(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, name)
                             : state.result;
    }
    return on_stream(name, stream, [&](CUstream handle) {
      const cuda_capture_guard relaxed{*driver_};
      return relaxed.run([&] { return call(handle); });
    });
  }

  [[nodiscard]] PAGESIFT_ALWAYS_INLINE bool says_not_capturing(CUstream stream) const noexcept {
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    return driver_->stream_is_capturing(stream, &capture) == CUDA_SUCCESS &&
           capture == CU_STREAM_CAPTURE_STATUS_NONE;
  }

  /// For a stream that cannot be asked without a context, that captures or that is in trouble.
  [[nodiscard]] PAGESIFT_RARELY_CALLED bool get_inspected_id(stream_type stream,
                                                             stream_id& id) const noexcept {
    const stream_state state = inspect(stream);
    id = state.id;
    return state.result.ok() && !state.capturing;
  }
  [[nodiscard]] PAGESIFT_RARELY_CALLED bool inspected_as_not_capturing(
      stream_type stream) const noexcept {
    stream_id id = 0;
    return get_inspected_id(stream, id);
  }

  /// The id is asked for only where the stream does not capture: it would end the capture.
  [[nodiscard]] stream_state identify(CUstream stream) const noexcept {
    stream_state state;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    state.result =
        cuda_status(driver_->stream_is_capturing(stream, &capture), "cuStreamIsCapturing");
    state.capturing = capture != CU_STREAM_CAPTURE_STATUS_NONE;
    if (state.result.ok() && !state.capturing) {
      unsigned long long id = 0;
      state.result = cuda_status(driver_->stream_get_id(stream, &id), "cuStreamGetId");
      state.id = id;
    }
    return state;
  }

  /// A created stream knows its context, so that the guard is needed only where the thread has no
  /// context at all. What the per-thread handle means depends on the current context.
  [[nodiscard]] stream_state identify_in_context(CUstream handle) const noexcept {
    const cuda_context_guard context{*driver_, context_};
    stream_state state;
    state.result = cuda_status(context.result(), "cuCtxPushCurrent");
    if (state.result.ok()) {
      state = identify(handle);
      state.per_thread = handle == CU_STREAM_PER_THREAD;
    }
    return state;
  }

  status query_memory(memory_info& info) const noexcept {
    return in_context("cuMemGetInfo",
                      [&] { return driver_->mem_get_info(&info.free_bytes, &info.total_bytes); });
  }

  std::shared_ptr<cuda_fence> fence_;
};

inline int cuda_backend::device_count(const cuda_driver& driver) {
  int count = 0;
  check_cuda(driver.device_get_count(&count), "cuDeviceGetCount");
  check_cuda(count == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS, "cuDeviceGetCount");
  return count;
}

inline int cuda_backend::current_device() {
  const cuda_driver& driver = cuda_driver::get();
  CUcontext context = nullptr;
  CUdevice device = 0;
  check_cuda(driver.ctx_get_current(&context), "cuCtxGetCurrent");
  if (context != nullptr) {
    const CUresult result = driver.ctx_get_device(&device);
    if (result != CUDA_ERROR_CONTEXT_IS_DESTROYED) {
      check_cuda(result, "cuCtxGetDevice");
      return device;
    }
  }
  // Only the runtime knows the device that a thread without a context, or with one that a reset has
  // destroyed, would start on. Where there
  // is one that call does not fail, and so leaves the last error alone.
  (void)device_count(driver);
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

/// After a reset the context is made anew by the first use of the runtime: in a thread of its own,
/// so that the calling thread's current device and last error stay.
inline cuda_primary_context cuda_backend::retain_context(const cuda_driver& driver, int device) {
  CUdevice handle = 0;
  cuda_primary_context context;
  check_cuda(driver.device_get(&handle, device), "cuDeviceGet");
  check_cuda(driver.primary_ctx_retain(&context.handle, handle), "cuDevicePrimaryCtxRetain");
  CUresult result = driver.ctx_get_id(context.handle, &context.id);
  if (result == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
    const auto use_runtime = [device] {
      const cudaError_t set = cudaSetDevice(device);
      return set == cudaSuccess ? cudaFree(nullptr) : set;
    };
    check_cuda(std::async(std::launch::async, use_runtime).get(), "cudaFree");
    result = driver.ctx_get_id(context.handle, &context.id);
  }
  check_cuda(result, "cuCtxGetId");
  return context;
}

inline cuda_backend cuda_backend::open(int device) {
  const cuda_driver& driver = cuda_driver::get();
  const int count = device_count(driver);
  const int ordinal = device == -1 ? current_device() : device;
  if (ordinal < 0 || ordinal >= count) {
    throw invalid_argument{"there is no CUDA device " + std::to_string(ordinal) + ": there are " +
                           std::to_string(count) + ", counted from 0"};
  }
  cuda_backend backend{driver, ordinal, retain_context(driver, ordinal)};
  memory_info info;
  check_cuda(backend.query_memory(info).code, "cuMemGetInfo");
  backend.total_bytes_ = info.total_bytes;
  return backend;
}

static_assert(is_virtual_backend_v<cuda_backend>);
static_assert(is_capturing_backend_v<cuda_backend>);
static_assert(knows_resets_v<cuda_backend>);

}  // namespace PAGESIFT_CUDA_NAMESPACE
}  // namespace pagesift
