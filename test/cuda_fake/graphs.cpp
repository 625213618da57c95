// Graphs that captures make: their nodes, user objects, executables, launches.
#include "world.hpp"

#include <algorithm>

namespace fake_cuda {

namespace {

template <typename Handle>
Handle new_number() {
  return reinterpret_cast<Handle>(the_world().last_graph += 16);
}

CUgraphEdgeData data_of(const edge& e) {
  CUgraphEdgeData data{};
  if (e.programmatic) {
    data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  }
  return data;
}

bool any_programmatic(const std::vector<edge>& edges) {
  return std::any_of(edges.begin(), edges.end(), [](const edge& e) { return e.programmatic; });
}

const std::vector<edge>* edges_into(CUgraphNode node) {
  const auto in = [node](const graph_content& content) -> const std::vector<edge>* {
    const auto found = content.nodes.find(node);
    return found == content.nodes.end() ? nullptr : &found->second;
  };
  for (const auto& entry : the_world().streams) {
    const auto& capturing = entry.second.capturing;
    if (const auto* edges = capturing ? in(*capturing->content) : nullptr) {
      return edges;
    }
  }
  for (const auto& entry : the_world().graphs) {
    if (const auto* edges = in(*entry.second)) {
      return edges;
    }
  }
  return nullptr;
}

/// The content of a graph, of one that is being captured too.
graph_content* content_of(CUgraph graph) {
  for (const auto& entry : the_world().streams) {
    const auto& capturing = entry.second.capturing;
    if (capturing && capturing->graph == graph) {
      return capturing->content.get();
    }
  }
  const auto found = the_world().graphs.find(graph);
  return found == the_world().graphs.end() ? nullptr : found->second.get();
}

}  // namespace

void capture_node(stream& s) {
  const auto node = new_number<CUgraphNode>();
  s.capturing->content->nodes[node] = s.dependencies;
  s.dependencies.assign(1, edge{node});
}

void depend(stream& s, const std::vector<edge>& dependencies) {
  for (const edge& added : dependencies) {
    const auto same = [&](const edge& e) { return e.from == added.from; };
    if (std::none_of(s.dependencies.begin(), s.dependencies.end(), same)) {
      s.dependencies.push_back(added);
    }
  }
}

CUresult capture_info(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                      CUgraph* graph, const CUgraphNode** nodes, const CUgraphEdgeData** edges,
                      std::size_t* count) {
  const CUresult result = is_capturing(handle, status);
  stream* s = result == CUDA_SUCCESS ? find_stream(handle) : nullptr;
  if (s == nullptr || !s->capturing) {
    return result;
  }
  *id = s->capturing->id;
  *graph = s->capturing->graph;
  if (edges == nullptr && nodes != nullptr && any_programmatic(s->dependencies)) {
    return CUDA_ERROR_LOSSY_QUERY;
  }
  s->shown_nodes.clear();
  s->shown_edges.clear();
  for (const edge& e : s->dependencies) {
    s->shown_nodes.push_back(e.from);
    s->shown_edges.push_back(data_of(e));
  }
  if (nodes != nullptr) {
    *nodes = s->shown_nodes.data();
    *count = s->shown_nodes.size();
  }
  if (edges != nullptr) {
    *edges = s->shown_edges.data();
  }
  return CUDA_SUCCESS;
}

CUresult node_dependencies(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* edges,
                           std::size_t* count) {
  const std::vector<edge>* before = edges_into(node);
  if (before == nullptr) {
    the_world().misuse.push_back("a call was given a node that does not exist");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (edges == nullptr && any_programmatic(*before)) {
    return CUDA_ERROR_LOSSY_QUERY;
  }
  *count = std::min(*count, before->size());
  for (std::size_t i = 0; i < *count; ++i) {
    nodes[i] = (*before)[i].from;
    if (edges != nullptr) {
      edges[i] = data_of((*before)[i]);
    }
  }
  return CUDA_SUCCESS;
}

CUresult create_user_object(CUuserObject* object, void* data, CUhostFn destroy) {
  *object = new_number<CUuserObject>();
  the_world().user_objects[*object] = std::make_shared<user_object>(destroy, data);
  return CUDA_SUCCESS;
}

CUresult release_user_object(CUuserObject object) {
  return the_world().user_objects.erase(object) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult retain_user_object(CUgraph graph, CUuserObject object, unsigned flags) {
  graph_content* content = content_of(graph);
  const auto found = the_world().user_objects.find(object);
  if (content == nullptr || found == the_world().user_objects.end()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  content->objects.push_back(found->second);
  if (flags == CU_GRAPH_USER_OBJECT_MOVE) {
    the_world().user_objects.erase(found);
  }
  return CUDA_SUCCESS;
}

CUresult instantiate(CUgraphExec* executable, CUgraph graph) {
  const auto found = the_world().graphs.find(graph);
  if (found == the_world().graphs.end()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *executable = new_number<CUgraphExec>();
  the_world().executables[*executable] = found->second;
  return CUDA_SUCCESS;
}

CUresult launch_graph(CUgraphExec executable, CUstream handle) {
  stream* s = find_stream(handle);
  const auto found = the_world().executables.find(executable);
  if (s == nullptr || found == the_world().executables.end()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (const CUresult forbidden = implicit_dependency(*s)) {
    return forbidden;
  }
  submit(*s, {}, found->second);
  return CUDA_SUCCESS;
}

CUresult destroy_graph(CUgraph graph) {
  return the_world().graphs.erase(graph) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult destroy_executable(CUgraphExec executable) {
  return the_world().executables.erase(executable) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void make_programmatic(CUstream handle) {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  for (edge& e : find_stream(handle)->dependencies) {
    e.programmatic = true;
  }
}

}  // namespace fake_cuda
