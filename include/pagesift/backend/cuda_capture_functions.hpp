// The CUDA driver's functions about stream captures and the graphs they make, looked up at run
// time.
#pragma once

#include <pagesift/backend/cuda_driver.hpp>

#include <cudaTypedefs.h>

#include <future>

namespace pagesift {
inline namespace PAGESIFT_CUDA_NAMESPACE {

/// What an edge of a graph stands for, as `CUgraphEdgeData` has it since CUDA 12.3: all zero is
/// full order; anything else lets the later node begin before the earlier one has ended.
struct cuda_edge {
  unsigned char from_port;
  unsigned char to_port;
  unsigned char type;
  unsigned char reserved[5];

  [[nodiscard]] bool full_order() const noexcept {
    return from_port == 0 && to_port == 0 && type == 0;
  }
};

/// Entry points. Those that tell edges came with CUDA 12.3; older drivers have no such edges, and
/// the functions they replaced. The types are written out, since a toolkit knows only some of them.
struct cuda_capture_functions {
  using capture_info = CUresult(CUDAAPI*)(CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*,
                                          const CUgraphNode**, std::size_t*);
  using capture_info_with_edges = CUresult(CUDAAPI*)(CUstream, CUstreamCaptureStatus*, cuuint64_t*,
                                                     CUgraph*, const CUgraphNode**,
                                                     const cuda_edge**, std::size_t*);
  using dependencies = CUresult(CUDAAPI*)(CUgraphNode, CUgraphNode*, std::size_t*);
  using dependencies_with_edges = CUresult(CUDAAPI*)(CUgraphNode, CUgraphNode*, cuda_edge*,
                                                     std::size_t*);

  capture_info get_info = nullptr;
  capture_info_with_edges get_info_with_edges = nullptr;  ///< or null
  dependencies get_dependencies = nullptr;
  dependencies_with_edges get_dependencies_with_edges = nullptr;  ///< or null
  PFN_cuUserObjectCreate_v11030 user_object_create = nullptr;
  PFN_cuUserObjectRelease_v11030 user_object_release = nullptr;
  PFN_cuGraphRetainUserObject_v11030 retain_user_object = nullptr;

  const char* missing = nullptr;  ///< one that the driver lacks; then none may be called

  /// The entry points, looked up once in a process.
  static const cuda_capture_functions& get() {
    // On a thread of its own, for the sake of the last error, as cuda_driver does.
    static const cuda_capture_functions functions = std::async(std::launch::async, load).get();
    return functions;
  }

  /// Looks all of them up. Prefer `get()`: one that is missing stays behind as the calling thread's
  /// last error.
  static cuda_capture_functions load();

 private:
  template <typename Function>
  void need(Function& function, const char* name, unsigned version) {
    missing = find_if_there(function, name, version) ? missing : name;
  }
};

inline cuda_capture_functions cuda_capture_functions::load() {
  constexpr unsigned with_edges = 12030;
  cuda_capture_functions f;
  int driver = 0;
  const bool known = cudaDriverGetVersion(&driver) == cudaSuccess;
  // A driver that does not know a version of a function may give its newest.
  if (known && driver >= static_cast<int>(with_edges)) {
    (void)find_if_there(f.get_info_with_edges, "cuStreamGetCaptureInfo", with_edges);
    (void)find_if_there(f.get_dependencies_with_edges, "cuGraphNodeGetDependencies", with_edges);
  }
  f.need(f.get_info, "cuStreamGetCaptureInfo", 11030);
  f.need(f.get_dependencies, "cuGraphNodeGetDependencies", 10000);
  f.need(f.user_object_create, "cuUserObjectCreate", 11030);
  f.need(f.user_object_release, "cuUserObjectRelease", 11030);
  f.need(f.retain_user_object, "cuGraphRetainUserObject", 11030);
  return f;
}

}  // namespace PAGESIFT_CUDA_NAMESPACE
}  // namespace pagesift
