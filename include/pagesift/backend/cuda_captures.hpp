// The calls of the CUDA backend about streams that are capturing a graph.
#pragma once

#include <pagesift/backend/cuda_capture_functions.hpp>
#include <pagesift/backend/cuda_mapper.hpp>
#include <pagesift/backend/stream_capture.hpp>

#include <algorithm>
#include <array>
#include <cstddef>

namespace pagesift {
inline namespace PAGESIFT_CUDA_NAMESPACE {

/// Captures of one device's streams. CUDA does not lock its graphs: as with the calls that submit
/// to them, no two threads may make these calls for one capture at once.
class cuda_captures : public cuda_mapper {
 public:
  using graph_type = CUgraph;
  using node_type = CUgraphNode;

  /// Legal on the capturing stream itself.
  [[nodiscard]] capture_state<graph_type, node_type> look_at_capture(
      cudaStream_t stream) const noexcept {
    capture_state<graph_type, node_type> seen;
    const CUstream handle = explicit_stream(stream);
    if (handle == CU_STREAM_LEGACY) {
      return seen;
    }
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    seen.result = capture_call("cuStreamGetCaptureInfo", [&] {
      const CUresult full = info(handle, capture, id, seen.graph, seen.position);
      return full != CUDA_ERROR_LOSSY_QUERY
                 ? full
                 : functions_->get_info(handle, &capture, &id, &seen.graph, nullptr, nullptr);
    });
    seen.capture = id;
    seen.active = capture == CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return seen;
  }

  /// Fails, or leaves out nodes, where edges do not stand for full order, as those of programmatic
  /// dependent launches.
  status nodes_before(node_type node, capture_position<node_type>& before) const noexcept {
    before = {};
    return capture_call("cuGraphNodeGetDependencies", [&] {
      std::size_t count = before.max_nodes;
      if (functions_->get_dependencies_with_edges == nullptr) {
        const CUresult result = functions_->get_dependencies(node, before.nodes.data(), &count);
        before.count = result == CUDA_SUCCESS ? std::min(count, before.max_nodes) : 0;
        return result;
      }
      std::array<cuda_edge, capture_position<node_type>::max_nodes> edges{};
      const CUresult result =
          functions_->get_dependencies_with_edges(node, before.nodes.data(), edges.data(), &count);
      for (std::size_t i = 0; result == CUDA_SUCCESS && i < std::min(count, edges.size()); ++i) {
        if (edges[i].full_order()) {
          before.nodes[before.count++] = before.nodes[i];
        }
      }
      return result;
    });
  }

  /// By a user object of CUDA's, which the graph, its clones and its executables keep. CUDA calls
  /// `over` from a thread of its own, some 0.2 ms after the last launch has ended.
  status watch_graph(graph_type graph, graph_over over, void* data) const noexcept {
    bool told = false;
    const status result = capture_call("cuGraphRetainUserObject", [&] {
      CUuserObject object = nullptr;
      const CUresult created =
          functions_->user_object_create(&object, data, over, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
      if (created != CUDA_SUCCESS) {
        return created;
      }
      told = true;
      const CUresult retained =
          functions_->retain_user_object(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
      if (retained != CUDA_SUCCESS) {
        (void)functions_->user_object_release(object, 1);
      }
      return retained;
    });
    if (!told) {
      over(data);
    }
    return result;
  }

 protected:
  cuda_captures(const cuda_driver& driver, int device, const cuda_primary_context& context)
      : cuda_mapper{driver, cuda_mapping_functions::get(), device, context},
        functions_{&cuda_capture_functions::get()} {}

 private:
  /// One call; CUDA_ERROR_LOSSY_QUERY where the driver has edges that it was not asked for.
  CUresult info(CUstream stream, CUstreamCaptureStatus& capture, cuuint64_t& id, CUgraph& graph,
                capture_position<node_type>& position) const noexcept {
    const CUgraphNode* nodes = nullptr;
    const cuda_edge* edges = nullptr;
    std::size_t count = 0;
    const CUresult result =
        functions_->get_info_with_edges != nullptr
            ? functions_->get_info_with_edges(stream, &capture, &id, &graph, &nodes, &edges, &count)
            : functions_->get_info(stream, &capture, &id, &graph, &nodes, &count);
    if (result != CUDA_SUCCESS || capture != CU_STREAM_CAPTURE_STATUS_ACTIVE ||
        count > position.max_nodes) {
      return result;
    }
    position.count = count;
    std::copy(nodes, nodes + count, position.nodes.begin());
    position.known = edges == nullptr || std::all_of(edges, edges + count, [](const cuda_edge& e) {
                       return e.full_order();
                     });
    return result;
  }

  template <typename Call>
  status capture_call(const char* name, Call&& call) const noexcept {
    if (functions_->missing != nullptr) {
      return {outcome::failed, cudaErrorCallRequiresNewerDriver, functions_->missing};
    }
    return in_context(name, std::forward<Call>(call));
  }

  const cuda_capture_functions* functions_;
};

}  // namespace PAGESIFT_CUDA_NAMESPACE
}  // namespace pagesift
