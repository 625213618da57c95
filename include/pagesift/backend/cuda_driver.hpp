// The CUDA driver's functions that the backend calls, looked up at run time.
//
// Nothing links to libcuda: the CUDA runtime finds the functions. The driver's own functions are
// used because they are half as dear as the runtime's where it matters (asking whether a stream
// captures: 20-25 ns against 45-62 ns on an H200), and because they neither read nor write the
// runtime's last error, which therefore needs no saving.
#pragma once

#include <pagesift/backend/cuda_default_stream.hpp>
#include <pagesift/core/error.hpp>
#include <pagesift/core/process_life.hpp>
#include <pagesift/core/status.hpp>

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <future>
#include <string>

namespace pagesift {
inline namespace PAGESIFT_CUDA_NAMESPACE {

/// Name and text of an error code. `CUresult` and `cudaError_t` number what they share alike.
[[nodiscard]] inline std::string cuda_error_text(int code) {
  const auto error = static_cast<cudaError_t>(code);
  return std::string{cudaGetErrorName(error)} + ": " + cudaGetErrorString(error);
}

/// \throws backend_error unless `result` is success.
inline void check_cuda(int result, const char* call) {
  if (result != 0) {
    throw backend_error{result, call, cuda_error_text(result)};
  }
}

/// What `call` came to. Code 2, no memory left, alone is shortage.
[[nodiscard]] inline status cuda_status(CUresult result, const char* call) noexcept {
  switch (result) {
    case CUDA_SUCCESS:
      return {outcome::ok, result, call};
    case CUDA_ERROR_OUT_OF_MEMORY:
      return {outcome::shortage, result, call};
    case CUDA_ERROR_NOT_READY:
      return {outcome::not_ready, result, call};
    default:
      return {outcome::failed, result, call};
  }
}

/// Entry points of the CUDA driver.
struct cuda_driver {
  PFN_cuInit_v2000 init = nullptr;
  PFN_cuDeviceGetCount_v2000 device_get_count = nullptr;
  PFN_cuDeviceGet_v2000 device_get = nullptr;
  PFN_cuDevicePrimaryCtxRetain_v7000 primary_ctx_retain = nullptr;
  PFN_cuCtxGetCurrent_v4000 ctx_get_current = nullptr;
  PFN_cuCtxPushCurrent_v4000 ctx_push_current = nullptr;
  PFN_cuCtxPopCurrent_v4000 ctx_pop_current = nullptr;
  PFN_cuCtxGetDevice_v2000 ctx_get_device = nullptr;
  PFN_cuCtxGetId_v12000 ctx_get_id = nullptr;
  PFN_cuMemAlloc_v3020 mem_alloc = nullptr;
  PFN_cuMemFree_v3020 mem_free = nullptr;
  PFN_cuMemGetInfo_v3020 mem_get_info = nullptr;
  PFN_cuMemcpyHtoDAsync_v3020 copy_host_to_device = nullptr;
  PFN_cuMemcpyDtoHAsync_v3020 copy_device_to_host = nullptr;
  PFN_cuMemsetD8Async_v3020 fill_bytes = nullptr;
  PFN_cuStreamIsCapturing_v10000 stream_is_capturing = nullptr;
  PFN_cuStreamGetId_v12000 stream_get_id = nullptr;
  PFN_cuStreamGetCtx_v9020 stream_get_context = nullptr;
  PFN_cuStreamSynchronize_v2000 stream_synchronize = nullptr;
  PFN_cuStreamWaitEvent_v3020 stream_wait_event = nullptr;
  PFN_cuThreadExchangeStreamCaptureMode_v10010 exchange_capture_mode = nullptr;
  PFN_cuEventCreate_v2000 event_create = nullptr;
  PFN_cuEventDestroy_v4000 event_destroy = nullptr;
  PFN_cuEventRecord_v2000 event_record = nullptr;
  PFN_cuEventQuery_v2000 event_query = nullptr;
  PFN_cuEventSynchronize_v2000 event_synchronize = nullptr;

  unsigned forks = 0;  ///< of the process, when they were looked up

  /// The entry points, looked up once in a process; a failure is tried again at the next call.
  /// \throws backend_error where there is no driver or device, or the driver is too old;
  /// fork_error in a child forked from a process that had looked them up, exit_error once the
  /// process has begun to exit.
  static const cuda_driver& get() {
    // On a thread of its own: the runtime keeps its last error per thread, so a failing look-up
    // there leaves whatever the caller has pending.
    static const cuda_driver driver = std::async(std::launch::async, load).get();
    const process_life& life = process_life::get();
    if (driver.forks != life.forks()) {
      throw fork_error{"device memory"};
    }
    if (life.exiting()) {
      life.rest_while_exiting();
      throw exit_error{"device memory"};
    }
    return driver;
  }

  /// Looks all of them up and initialises the driver. Prefer `get()`: a failure here stays behind
  /// as the calling thread's last error.
  static cuda_driver load();
};

/// Sets `function` to the driver's `name` as it was in CUDA `version` (1000 * major + 10 * minor).
/// \throws backend_error where there is no driver, or it lacks that function.
template <typename Function>
void find_cuda_function(Function& function, const char* name, unsigned version) {
  void* address = nullptr;
  // Legacy: the backend never passes a null handle, so both kinds of entry point are the same to
  // it.
#if CUDART_VERSION >= 12050
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableLegacyStream);
#else
  // The runtime would give the function as it was in its own version, of another type maybe.
  PFN_cuGetProcAddress_v12000 look_up = nullptr;
  void* const target = &look_up;
  cudaError_t error =
      cudaGetDriverEntryPoint("cuGetProcAddress", static_cast<void**>(target), cudaEnableDefault);
  if (error == cudaSuccess && look_up != nullptr) {
    error = static_cast<cudaError_t>(look_up(name, &address, static_cast<int>(version),
                                             CU_GET_PROC_ADDRESS_LEGACY_STREAM, nullptr));
    error = error == cudaErrorSymbolNotFound ? cudaErrorInvalidValue : error;
  }
#endif
  const bool too_old = error == cudaErrorInvalidValue || (error == cudaSuccess && !address);
  if (too_old) {
    throw backend_error{cudaErrorCallRequiresNewerDriver, std::string{"looking up "} + name,
                        "the CUDA driver is too old to have it: it came with CUDA " +
                            std::to_string(version / 1000) + "." +
                            std::to_string(version % 1000 / 10)};
  }
  check_cuda(error, "cudaGetDriverEntryPoint");
  function = reinterpret_cast<Function>(address);
}

/// The same for a function that a driver may do without; returns whether it has it.
template <typename Function>
[[nodiscard]] bool find_if_there(Function& function, const char* name, unsigned version) {
  try {
    find_cuda_function(function, name, version);
    return true;
  } catch (const backend_error&) {
    return false;
  }
}

inline cuda_driver cuda_driver::load() {
  cuda_driver d;
  find_cuda_function(d.init, "cuInit", 2000);
  find_cuda_function(d.device_get_count, "cuDeviceGetCount", 2000);
  find_cuda_function(d.device_get, "cuDeviceGet", 2000);
  find_cuda_function(d.primary_ctx_retain, "cuDevicePrimaryCtxRetain", 7000);
  find_cuda_function(d.ctx_get_current, "cuCtxGetCurrent", 4000);
  find_cuda_function(d.ctx_push_current, "cuCtxPushCurrent", 4000);
  find_cuda_function(d.ctx_pop_current, "cuCtxPopCurrent", 4000);
  find_cuda_function(d.ctx_get_device, "cuCtxGetDevice", 2000);
  find_cuda_function(d.ctx_get_id, "cuCtxGetId", 12000);
  find_cuda_function(d.mem_alloc, "cuMemAlloc", 3020);
  find_cuda_function(d.mem_free, "cuMemFree", 3020);
  find_cuda_function(d.mem_get_info, "cuMemGetInfo", 3020);
  find_cuda_function(d.copy_host_to_device, "cuMemcpyHtoDAsync", 3020);
  find_cuda_function(d.copy_device_to_host, "cuMemcpyDtoHAsync", 3020);
  find_cuda_function(d.fill_bytes, "cuMemsetD8Async", 3020);
  find_cuda_function(d.stream_is_capturing, "cuStreamIsCapturing", 10000);
  find_cuda_function(d.stream_get_id, "cuStreamGetId", 12000);
  find_cuda_function(d.stream_get_context, "cuStreamGetCtx", 9020);
  find_cuda_function(d.stream_synchronize, "cuStreamSynchronize", 2000);
  find_cuda_function(d.stream_wait_event, "cuStreamWaitEvent", 3020);
  find_cuda_function(d.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", 10010);
  find_cuda_function(d.event_create, "cuEventCreate", 2000);
  find_cuda_function(d.event_destroy, "cuEventDestroy", 4000);
  find_cuda_function(d.event_record, "cuEventRecord", 2000);
  find_cuda_function(d.event_query, "cuEventQuery", 2000);
  find_cuda_function(d.event_synchronize, "cuEventSynchronize", 2000);
  process_life::get().watch();
  d.forks = process_life::get().forks();
  check_cuda(d.init(0), "cuInit");
  return d;
}

}  // namespace PAGESIFT_CUDA_NAMESPACE
}  // namespace pagesift
