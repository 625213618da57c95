// The runtime's calls that work on a stream. Each exists twice, for the two meanings of a null
// stream: runtime_stream_per_thread.cpp compiles this file a second time, and CUDA's header then
// gives every function its other name.
#include "world.hpp"

#include <cstring>

using namespace fake_cuda;

namespace {

CUstream meant(CUstream s) {
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
  return s == nullptr ? CU_STREAM_PER_THREAD : s;
#else
  return s;
#endif
}

// CUDA takes null where no bytes are asked for.
void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0) {
    std::memmove(to, from, bytes);
  }
}

void set_bytes(void* p, int value, std::size_t bytes) {
  if (bytes != 0) {
    std::memset(p, value, bytes);
  }
}

}  // namespace

extern "C" {

cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  return runtime_call({"cudaStreamSynchronize", s}, [&] { return synchronize_stream(meant(s)); });
}

cudaError_t cudaStreamQuery(cudaStream_t s) {
  return runtime_call({"cudaStreamQuery", s}, [&] { return query_stream(meant(s)); });
}

cudaError_t cudaStreamGetId(cudaStream_t s, unsigned long long* id) {
  return runtime_call({"cudaStreamGetId", s}, [&] { return stream_id(meant(s), id); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  return runtime_call({"cudaStreamWaitEvent", s}, [&] { return wait(meant(s), e); });
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  return runtime_call({"cudaEventRecord", s}, [&] { return record(e, meant(s)); });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
  return runtime_call({"cudaStreamBeginCapture", s}, [&] {
    return begin_capture(meant(s), static_cast<CUstreamCaptureMode>(mode));
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph) {
  return runtime_call({"cudaStreamEndCapture", s}, [&] { return end_capture(meant(s), graph); });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t s) {
  return runtime_call({"cudaGraphLaunch", s}, [&] { return launch_graph(executable, meant(s)); });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* status) {
  return runtime_call({"cudaStreamIsCapturing", s}, [&] {
    CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = is_capturing(meant(s), &found);
    *status = static_cast<cudaStreamCaptureStatus>(found);
    return result;
  });
}

cudaError_t cudaMallocAsync(void** p, std::size_t bytes, cudaStream_t s) {
  return runtime_call({"cudaMallocAsync", s, bytes}, [&] {
    *p = nullptr;
    return bytes == 0 ? CUDA_SUCCESS : allocate(bytes, p);
  });
}

cudaError_t cudaFreeAsync(void* p, cudaStream_t s) {
  return runtime_call({"cudaFreeAsync", s},
                      [&] { return p == nullptr ? CUDA_SUCCESS : release(p); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t s) {
  return runtime_call({"cudaMemcpyAsync", s, bytes}, [&] {
    copy_bytes(to, from, bytes);
    return launch(meant(s));
  });
}

cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t s) {
  return runtime_call({"cudaMemsetAsync", s, bytes}, [&] {
    set_bytes(p, value, bytes);
    return launch(meant(s));
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  return runtime_call({"cudaMemcpy", nullptr, bytes}, [&] {
    copy_bytes(to, from, bytes);
    return synchronize_stream(meant(nullptr));
  });
}

cudaError_t cudaMemset(void* p, int value, std::size_t bytes) {
  return runtime_call({"cudaMemset", nullptr, bytes}, [&] {
    set_bytes(p, value, bytes);
    return launch(meant(nullptr));
  });
}

cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t s) {
  return runtime_call({"cudaLaunchKernel", s}, [&] { return launch(meant(s)); });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void*, void**) {
  return runtime_call({"cudaLaunchKernel", config->stream},
                      [&] { return launch(meant(config->stream)); });
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** address, unsigned version,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  return contextless_runtime_call({"cudaGetDriverEntryPoint"}, [&] {
    *address = entry_point(symbol, version);
    if (result != nullptr) {
      *result =
          *address == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
    }
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** address, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPointByVersion(symbol, address, CUDART_VERSION, flags, result);
}
}
