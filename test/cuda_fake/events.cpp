// Calls about events.
#include "world.hpp"

namespace fake_cuda {

namespace {

event* find_event(CUevent e) {
  const auto found = the_world().events.find(e);
  if (found == the_world().events.end()) {
    the_world().misuse.push_back("a call was given an event that does not exist");
    return nullptr;
  }
  return &found->second;
}

/// Success where the host may ask about `e` or wait for it.
CUresult host_may_see(const event* e) {
  if (e == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  return e->captured ? CUDA_ERROR_CAPTURED_EVENT : potentially_unsafe();
}

}  // namespace

CUresult create_event(CUevent* e) {
  static std::uintptr_t last = 0x100;
  *e = reinterpret_cast<CUevent>(last += 16);
  the_world().events[*e].device = current_context()->device;
  return CUDA_SUCCESS;
}

CUresult destroy_event(CUevent e) {
  if (find_event(e) == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  the_world().events.erase(e);
  return CUDA_SUCCESS;
}

CUresult record(CUevent e, CUstream handle) {
  event* recorded = find_event(e);
  stream* s = find_stream(handle);
  if (recorded == nullptr || s == nullptr || recorded->device != s->device) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (const CUresult forbidden = implicit_dependency(*s)) {
    return forbidden;
  }
  recorded->captured = s->capturing;
  recorded->dependencies = s->dependencies;
  if (!s->capturing) {
    recorded->recorded = submit(*s);
  }
  return CUDA_SUCCESS;
}

CUresult wait(CUstream handle, CUevent e) {
  const event* awaited = find_event(e);
  stream* s = find_stream(handle);
  if (awaited == nullptr || s == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (const CUresult forbidden = implicit_dependency(*s)) {
    return forbidden;
  }
  if (s->capturing && s->capturing != awaited->captured) {
    s->capturing->valid = false;
    return awaited->captured ? CUDA_ERROR_STREAM_CAPTURE_MERGE
                             : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (awaited->captured) {
    if (!s->capturing) {
      s->capturing = awaited->captured;  // the stream joins that capture
      s->dependencies.clear();
    }
    depend(*s, awaited->dependencies);
  } else {
    submit(*s, {awaited->recorded});
  }
  return CUDA_SUCCESS;
}

CUresult query(CUevent e) {
  const event* asked = find_event(e);
  if (const CUresult forbidden = host_may_see(asked)) {
    return forbidden;
  }
  return is_complete(asked->recorded) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult synchronize(CUevent e) {
  const event* awaited = find_event(e);
  if (const CUresult forbidden = host_may_see(awaited)) {
    return forbidden;
  }
  complete_until(awaited->recorded);
  return CUDA_SUCCESS;
}

}  // namespace fake_cuda
