// Calls about streams.
#include "world.hpp"

namespace fake_cuda {

namespace {

/// Handles are numbers that nothing lies at; the last one given back is the next one given out.
CUstream new_handle() {
  world& w = the_world();
  if (w.recycled.empty()) {
    return reinterpret_cast<CUstream>(w.last_handle += 64);
  }
  const CUstream handle = w.recycled.back();
  w.recycled.pop_back();
  w.reset_handles.erase(handle);
  return handle;
}

}  // namespace

CUresult create_stream(CUstream* handle, unsigned flags) {
  stream& s = new_stream(current_context()->device, (flags & CU_STREAM_NON_BLOCKING) == 0);
  *handle = new_handle();
  the_world().handles[*handle] = s.id;
  return CUDA_SUCCESS;
}

CUresult destroy_stream(CUstream handle) {
  stream* s = find_stream(handle);
  if (s == nullptr || the_world().handles.erase(handle) == 0) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  the_world().recycled.push_back(handle);
  s->destroyed = true;
  forget_if_gone(s->id);
  return CUDA_SUCCESS;
}

CUresult stream_id(CUstream handle, unsigned long long* id) {
  const stream* s = find_stream(handle);
  if (s == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (s->capturing) {
    s->capturing->valid = false;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  *id = s->id;
  return CUDA_SUCCESS;
}

CUresult query_stream(CUstream handle) {
  const stream* s = find_stream(handle);
  if (s == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (const CUresult forbidden = wait_beside_captures(*s)) {
    return forbidden;
  }
  return s->pending.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult synchronize_stream(CUstream handle) {
  const stream* s = find_stream(handle);
  if (s == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (const CUresult forbidden = wait_beside_captures(*s)) {
    return forbidden;
  }
  complete_until(s->tail());
  return CUDA_SUCCESS;
}

CUresult synchronize_context() {
  const int device = current_context()->device;
  if (const CUresult forbidden = conflicts_with_capture(device)) {
    return forbidden;
  }
  complete_device(device);
  return CUDA_SUCCESS;
}

CUresult launch(CUstream handle) {
  stream* s = find_stream(handle);
  if (s == nullptr || s->device != current_context()->device) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (const CUresult forbidden = implicit_dependency(*s)) {
    return forbidden;
  }
  if (s->capturing) {
    capture_node(*s);
  } else {
    submit(*s);
  }
  return CUDA_SUCCESS;
}

}  // namespace fake_cuda
