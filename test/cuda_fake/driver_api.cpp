// The driver's functions, reachable through cudaGetDriverEntryPoint only.
#include "world.hpp"

#include <cstring>

namespace fake_cuda {

namespace {

CUresult CUDAAPI init(unsigned) {
  return contextless_call({"cuInit"}, [] { return CUDA_SUCCESS; });
}

CUresult CUDAAPI device_get_count(int* count) {
  return contextless_call({"cuDeviceGetCount"}, [&] {
    *count = the_world().devices;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI device_get(CUdevice* device, int ordinal) {
  return contextless_call({"cuDeviceGet"}, [&] {
    *device = ordinal;
    return ordinal >= 0 && ordinal < the_world().devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult CUDAAPI primary_ctx_retain(CUcontext* context, CUdevice device) {
  return contextless_call({"cuDevicePrimaryCtxRetain"}, [&] {
    *context = &the_world().contexts[device];
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI ctx_get_current(CUcontext* context) {
  return contextless_call({"cuCtxGetCurrent"}, [&] {
    *context = current_context();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI ctx_push_current(CUcontext context) {
  return contextless_call({"cuCtxPushCurrent"}, [&] {
    this_thread().contexts.push_back(context);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI ctx_pop_current(CUcontext* context) {
  return contextless_call({"cuCtxPopCurrent"}, [&] {
    *context = current_context();
    if (*context == nullptr) {
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    this_thread().contexts.pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI ctx_get_device(CUdevice* device) {
  return driver_call({"cuCtxGetDevice"}, [&] {
    *device = current_context()->device;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI ctx_get_id(CUcontext context, unsigned long long* id) {
  return contextless_call({"cuCtxGetId"}, [&] {
    *id = context->id;
    return context->destroyed ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
  });
}

CUresult CUDAAPI ctx_synchronize() {
  return driver_call({"cuCtxSynchronize"}, [] { return synchronize_context(); });
}

CUresult CUDAAPI mem_alloc(CUdeviceptr* p, std::size_t bytes) {
  return driver_call({"cuMemAlloc", nullptr, bytes}, [&] {
    return bytes == 0 ? CUDA_ERROR_INVALID_VALUE : allocate(bytes, reinterpret_cast<void**>(p));
  });
}

CUresult CUDAAPI mem_free(CUdeviceptr p) {
  return driver_call({"cuMemFree"}, [&] { return release(reinterpret_cast<void*>(p)); });
}

CUresult CUDAAPI mem_get_info(std::size_t* free_bytes, std::size_t* total_bytes) {
  return driver_call({"cuMemGetInfo"}, [&] { return memory_info(free_bytes, total_bytes); });
}

CUresult CUDAAPI copy_host_to_device(CUdeviceptr to, const void* from, std::size_t bytes,
                                     CUstream s) {
  return driver_call({"cuMemcpyHtoDAsync", s, bytes}, [&] {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return launch(s);
  });
}

CUresult CUDAAPI copy_device_to_host(void* to, CUdeviceptr from, std::size_t bytes, CUstream s) {
  return driver_call({"cuMemcpyDtoHAsync", s, bytes}, [&] {
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return launch(s);
  });
}

CUresult CUDAAPI fill_bytes(CUdeviceptr to, unsigned char byte, std::size_t bytes, CUstream s) {
  return driver_call({"cuMemsetD8Async", s, bytes}, [&] {
    std::memset(reinterpret_cast<void*>(to), byte, bytes);
    return launch(s);
  });
}

CUresult CUDAAPI stream_get_context(CUstream s, CUcontext* context) {
  return contextless_call({"cuStreamGetCtx", s}, [&] {
    const stream* const found = find_stream(s);
    if (found == nullptr) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    *context = &the_world().contexts[found->device];
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI stream_synchronize(CUstream s) {
  return driver_call({"cuStreamSynchronize", s}, [&] { return synchronize_stream(s); });
}

CUresult CUDAAPI stream_is_capturing(CUstream s, CUstreamCaptureStatus* status) {
  return driver_call({"cuStreamIsCapturing", s}, [&] { return is_capturing(s, status); });
}

CUresult CUDAAPI stream_get_id(CUstream s, unsigned long long* id) {
  return driver_call({"cuStreamGetId", s}, [&] { return stream_id(s, id); });
}

CUresult CUDAAPI stream_wait_event(CUstream s, CUevent e, unsigned) {
  return driver_call({"cuStreamWaitEvent", s}, [&] { return wait(s, e); });
}

CUresult CUDAAPI thread_exchange_capture_mode(CUstreamCaptureMode* mode) {
  return contextless_call({"cuThreadExchangeStreamCaptureMode"},
                          [&] { return exchange_capture_mode(mode); });
}

CUresult CUDAAPI event_create(CUevent* e, unsigned) {
  return driver_call({"cuEventCreate"}, [&] { return create_event(e); });
}

CUresult CUDAAPI event_destroy(CUevent e) {
  return driver_call({"cuEventDestroy"}, [&] { return destroy_event(e); });
}

CUresult CUDAAPI event_record(CUevent e, CUstream s) {
  return driver_call({"cuEventRecord", s}, [&] { return record(e, s); });
}

CUresult CUDAAPI event_query(CUevent e) {
  return driver_call({"cuEventQuery"}, [&] { return query(e); });
}

CUresult CUDAAPI event_synchronize(CUevent e) {
  return driver_call({"cuEventSynchronize"}, [&] { return synchronize(e); });
}

CUresult CUDAAPI stream_get_capture_info(CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id,
                                         CUgraph* graph, const CUgraphNode** nodes,
                                         std::size_t* count) {
  return driver_call({"cuStreamGetCaptureInfo", s},
                     [&] { return capture_info(s, status, id, graph, nodes, nullptr, count); });
}

CUresult CUDAAPI stream_get_capture_info_with_edges(CUstream s, CUstreamCaptureStatus* status,
                                                    cuuint64_t* id, CUgraph* graph,
                                                    const CUgraphNode** nodes,
                                                    const CUgraphEdgeData** edges,
                                                    std::size_t* count) {
  return driver_call({"cuStreamGetCaptureInfo", s},
                     [&] { return capture_info(s, status, id, graph, nodes, edges, count); });
}

CUresult CUDAAPI graph_node_get_dependencies(CUgraphNode node, CUgraphNode* nodes,
                                             std::size_t* count) {
  return driver_call({"cuGraphNodeGetDependencies"},
                     [&] { return node_dependencies(node, nodes, nullptr, count); });
}

CUresult CUDAAPI graph_node_get_dependencies_with_edges(CUgraphNode node, CUgraphNode* nodes,
                                                        CUgraphEdgeData* edges,
                                                        std::size_t* count) {
  return driver_call({"cuGraphNodeGetDependencies"},
                     [&] { return node_dependencies(node, nodes, edges, count); });
}

CUresult CUDAAPI user_object_create(CUuserObject* object, void* data, CUhostFn destroy, unsigned,
                                    unsigned) {
  return driver_call({"cuUserObjectCreate"},
                     [&] { return create_user_object(object, data, destroy); });
}

CUresult CUDAAPI user_object_release(CUuserObject object, unsigned) {
  return driver_call({"cuUserObjectRelease"}, [&] { return release_user_object(object); });
}

CUresult CUDAAPI graph_retain_user_object(CUgraph graph, CUuserObject object, unsigned,
                                          unsigned flags) {
  return driver_call({"cuGraphRetainUserObject"},
                     [&] { return retain_user_object(graph, object, flags); });
}

template <typename Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void* entry_point(const std::string& name, unsigned version) {
  // Functions that came to tell edges in CUDA 12.3; older versions can still be had.
  static const std::map<std::string, void*> with_edges{
      {"cuStreamGetCaptureInfo", address_of(stream_get_capture_info_with_edges)},
      {"cuGraphNodeGetDependencies", address_of(graph_node_get_dependencies_with_edges)}};
  static const std::map<std::string, void*> functions{
      {"cuInit", address_of(init)},
      {"cuDeviceGetCount", address_of(device_get_count)},
      {"cuDeviceGet", address_of(device_get)},
      {"cuDevicePrimaryCtxRetain", address_of(primary_ctx_retain)},
      {"cuCtxGetCurrent", address_of(ctx_get_current)},
      {"cuCtxPushCurrent", address_of(ctx_push_current)},
      {"cuCtxPopCurrent", address_of(ctx_pop_current)},
      {"cuCtxGetDevice", address_of(ctx_get_device)},
      {"cuCtxGetId", address_of(ctx_get_id)},
      {"cuCtxSynchronize", address_of(ctx_synchronize)},
      {"cuMemAlloc", address_of(mem_alloc)},
      {"cuMemFree", address_of(mem_free)},
      {"cuMemGetInfo", address_of(mem_get_info)},
      {"cuMemcpyHtoDAsync", address_of(copy_host_to_device)},
      {"cuMemcpyDtoHAsync", address_of(copy_device_to_host)},
      {"cuMemsetD8Async", address_of(fill_bytes)},
      {"cuStreamGetCtx", address_of(stream_get_context)},
      {"cuStreamSynchronize", address_of(stream_synchronize)},
      {"cuStreamIsCapturing", address_of(stream_is_capturing)},
      {"cuStreamGetId", address_of(stream_get_id)},
      {"cuStreamWaitEvent", address_of(stream_wait_event)},
      {"cuThreadExchangeStreamCaptureMode", address_of(thread_exchange_capture_mode)},
      {"cuEventCreate", address_of(event_create)},
      {"cuEventDestroy", address_of(event_destroy)},
      {"cuEventRecord", address_of(event_record)},
      {"cuEventQuery", address_of(event_query)},
      {"cuEventSynchronize", address_of(event_synchronize)},
      {"cuStreamGetCaptureInfo", address_of(stream_get_capture_info)},
      {"cuGraphNodeGetDependencies", address_of(graph_node_get_dependencies)},
      {"cuUserObjectCreate", address_of(user_object_create)},
      {"cuUserObjectRelease", address_of(user_object_release)},
      {"cuGraphRetainUserObject", address_of(graph_retain_user_object)}};
  if (the_world().removed.count(name) != 0) {
    return nullptr;
  }
  if (version >= 12030 && with_edges.count(name) != 0) {
    return with_edges.at(name);
  }
  const auto found = functions.find(name);
  if (found != functions.end()) {
    return found->second;
  }
  const auto mapping = mapping_functions().find(name);
  return mapping != mapping_functions().end() ? mapping->second : nullptr;
}

}  // namespace fake_cuda
