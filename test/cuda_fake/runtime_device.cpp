// The runtime's calls that no stream is given to: devices, errors, memory, events, entry points.
#include "world.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

using namespace fake_cuda;

namespace {

CUresult set_device(int device) {
  if (device < 0 || device >= the_world().devices) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  auto& stack = this_thread().contexts;
  if (stack.empty()) {
    stack.push_back(nullptr);
  }
  stack.back() = &the_world().contexts[device];
  return CUDA_SUCCESS;
}

/// Those of an H200 that Thrust and CUB ask for.
int attribute(cudaDeviceAttr name) {
  switch (name) {
    case cudaDevAttrComputeCapabilityMajor:
      return 9;
    case cudaDevAttrComputeCapabilityMinor:
      return 0;
    case cudaDevAttrMultiProcessorCount:
      return 132;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return 49152;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return 232448;
    case cudaDevAttrMaxGridDimX:
      return 2147483647;
    case cudaDevAttrMaxGridDimY:
      return 65535;
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return 2048;
    default:
      return 1;
  }
}

cudaError_t host_memory(const char* name, void** p, std::size_t bytes) {
  return runtime_call({name, nullptr, bytes}, [&] {
    *p = std::malloc(bytes);
    return *p == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaGetDevice(int* device) {
  return contextless_runtime_call({"cudaGetDevice"}, [&] {
    const CUcontext current = current_context();
    *device = current == nullptr ? 0 : current->device;
    return the_world().devices == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
  });
}

cudaError_t cudaSetDevice(int device) {
  return contextless_runtime_call({"cudaSetDevice"}, [&] { return set_device(device); });
}

cudaError_t cudaGetDeviceCount(int* count) {
  return contextless_runtime_call({"cudaGetDeviceCount"}, [&] {
    *count = the_world().devices;
    return *count == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr name, int) {
  return contextless_runtime_call({"cudaDeviceGetAttribute"}, [&] {
    *value = attribute(name);
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  return contextless_runtime_call({"cudaGetDeviceProperties"}, [&] {
    std::memset(properties, 0, sizeof *properties);
    std::strcpy(properties->name, "fake");
    properties->totalGlobalMem = the_world().bytes_each;
    properties->major = attribute(cudaDevAttrComputeCapabilityMajor);
    properties->multiProcessorCount = attribute(cudaDevAttrMultiProcessorCount);
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  return runtime_call({"cudaDeviceSynchronize"}, [] { return synchronize_context(); });
}

cudaError_t cudaDeviceReset() {
  return runtime_call({"cudaDeviceReset"}, [] { return reset_device(current_context()->device); });
}

cudaError_t cudaPeekAtLastError() {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  return this_thread().last_error;
}

cudaError_t cudaGetLastError() {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  return std::exchange(this_thread().last_error, cudaSuccess);
}

cudaError_t cudaMalloc(void** p, std::size_t bytes) {
  return runtime_call({"cudaMalloc", nullptr, bytes}, [&] {
    *p = nullptr;
    return bytes == 0 ? CUDA_SUCCESS : allocate(bytes, p);
  });
}

cudaError_t cudaFree(void* p) {
  return runtime_call({"cudaFree"}, [&] { return p == nullptr ? CUDA_SUCCESS : release(p); });
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  return runtime_call({"cudaMemGetInfo"}, [&] { return memory_info(free_bytes, total_bytes); });
}

cudaError_t cudaMallocHost(void** p, std::size_t bytes) {
  return host_memory("cudaMallocHost", p, bytes);
}

cudaError_t cudaHostAlloc(void** p, std::size_t bytes, unsigned) {
  return host_memory("cudaHostAlloc", p, bytes);
}

cudaError_t cudaFreeHost(void* p) {
  return runtime_call({"cudaFreeHost"}, [&] {
    std::free(p);
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned flags) {
  return runtime_call({"cudaStreamCreateWithFlags"}, [&] { return create_stream(s, flags); });
}

cudaError_t cudaStreamCreate(cudaStream_t* s) {
  return runtime_call({"cudaStreamCreate"}, [&] { return create_stream(s, CU_STREAM_DEFAULT); });
}

cudaError_t cudaStreamDestroy(cudaStream_t s) {
  return runtime_call({"cudaStreamDestroy", s}, [&] { return destroy_stream(s); });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  return runtime_call({"cudaGraphInstantiate"}, [&] { return instantiate(executable, graph); });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return runtime_call({"cudaGraphDestroy"}, [&] { return destroy_graph(graph); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return runtime_call({"cudaGraphExecDestroy"}, [&] { return destroy_executable(executable); });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return runtime_call({"cudaThreadExchangeStreamCaptureMode"}, [&] {
    auto exchanged = static_cast<CUstreamCaptureMode>(*mode);
    const CUresult result = exchange_capture_mode(&exchanged);
    *mode = static_cast<cudaStreamCaptureMode>(exchanged);
    return result;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* e) {
  return runtime_call({"cudaEventCreate"}, [&] { return create_event(e); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) {
  return runtime_call({"cudaEventCreateWithFlags"}, [&] { return create_event(e); });
}

cudaError_t cudaEventDestroy(cudaEvent_t e) {
  return runtime_call({"cudaEventDestroy"}, [&] { return destroy_event(e); });
}

cudaError_t cudaEventQuery(cudaEvent_t e) {
  return runtime_call({"cudaEventQuery"}, [&] { return query(e); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  return runtime_call({"cudaEventSynchronize"}, [&] { return synchronize(e); });
}
}
