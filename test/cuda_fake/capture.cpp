// The rules of stream capture, as measured on an H200 and as the CUDA documentation has them.
#include "world.hpp"

namespace fake_cuda {

namespace {

CUresult invalidate(const std::vector<capture*>& captures, CUresult error) {
  for (capture* c : captures) {
    c->valid = false;
  }
  return captures.empty() ? CUDA_SUCCESS : error;
}

template <typename Predicate>
std::vector<capture*> captures_where(Predicate&& matches) {
  std::vector<capture*> found;
  for (const auto& entry : the_world().streams) {
    const stream& s = entry.second;
    if (s.capturing && matches(s)) {
      found.push_back(s.capturing.get());
    }
  }
  return found;
}

bool is_legacy(const stream& s) { return the_world().legacy[s.device] == s.id; }

std::vector<capture*> blocking_captures(int device) {
  return captures_where(
      [&](const stream& other) { return other.device == device && other.blocking; });
}

}  // namespace

CUresult potentially_unsafe() {
  const CUstreamCaptureMode mode = this_thread().capture_mode;
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
    return CUDA_SUCCESS;
  }
  const auto forbids = [&](const stream& s) {
    const bool own = s.capturing->thread == std::this_thread::get_id();
    return own ? s.capturing->mode != CU_STREAM_CAPTURE_MODE_RELAXED
               : s.capturing->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                     mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
  };
  return invalidate(captures_where(forbids), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult conflicts_with_capture(int device) {
  return invalidate(captures_where([&](const stream& s) { return s.device == device; }),
                    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult implicit_dependency(const stream& s) {
  if (!is_legacy(s)) {
    return CUDA_SUCCESS;
  }
  return invalidate(blocking_captures(s.device), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

CUresult wait_beside_captures(const stream& s) {
  if (s.capturing) {
    s.capturing->valid = false;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  const CUresult forbidden = implicit_dependency(s);
  return forbidden != CUDA_SUCCESS ? forbidden : potentially_unsafe();
}

CUresult is_capturing(CUstream handle, CUstreamCaptureStatus* status) {
  if (the_world().reset_handles.count(handle) != 0) {
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  const stream* s = find_stream(handle);
  if (s == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (is_legacy(*s) && !blocking_captures(s->device).empty()) {
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  *status = !s->capturing         ? CU_STREAM_CAPTURE_STATUS_NONE
            : s->capturing->valid ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                  : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  return CUDA_SUCCESS;
}

CUresult begin_capture(CUstream handle, CUstreamCaptureMode mode) {
  stream* s = find_stream(handle);
  if (s == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (s->capturing || is_legacy(*s)) {
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  world& w = the_world();
  const auto graph = reinterpret_cast<CUgraph>(w.last_graph += 16);
  const auto content = std::make_shared<graph_content>();
  s->capturing = std::make_shared<capture>(
      capture{mode, std::this_thread::get_id(), s->id, ++w.last_id, graph, content});
  s->dependencies.clear();
  return CUDA_SUCCESS;
}

CUresult end_capture(CUstream handle, CUgraph* graph) {
  stream* s = find_stream(handle);
  if (s == nullptr || !s->capturing) {
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  const std::shared_ptr<capture> ended = s->capturing;
  if (ended->origin != s->id) {
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  if (ended->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      ended->thread != std::this_thread::get_id()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  for (auto& entry : the_world().streams) {
    if (entry.second.capturing == ended) {
      entry.second.capturing.reset();
    }
  }
  *graph = ended->valid ? ended->graph : nullptr;
  if (ended->valid) {
    the_world().graphs[ended->graph] = ended->content;
  }
  return ended->valid ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

CUresult exchange_capture_mode(CUstreamCaptureMode* mode) {
  std::swap(*mode, this_thread().capture_mode);
  return CUDA_SUCCESS;
}

}  // namespace fake_cuda
