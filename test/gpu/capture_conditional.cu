// Captures into the body of a conditional node.
#include "captured_graph.hpp"
#include "late_write.hpp"

#if CUDART_VERSION >= 12040

using pagesift::cuda_pool;
using pagesift::mebibyte;

namespace {

constexpr std::size_t body_bytes = 4 * mebibyte;

/// Counts down at each turn of a loop and ends it at 0; starts the next launch anew.
__global__ void count_down(cudaGraphConditionalHandle loop, int* turns, int first) {
  *turns = *turns == 0 ? first : *turns;
  cudaGraphSetConditional(loop, --*turns == 0 ? 0 : 1);
}

cudaGraph_t add_conditional(cudaGraph_t graph, cudaGraphConditionalHandle handle,
                            cudaGraphConditionalNodeType type) {
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle;
  params.conditional.type = type;
  params.conditional.size = 1;
  cudaGraphNode_t node = nullptr;
#if CUDART_VERSION >= 13000
  gpu::require(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
#else
  gpu::require(cudaGraphAddNode(&node, graph, nullptr, 0, &params));
#endif
  return params.conditional.phGraph_out[0];
}

/// Launches often beside eager work, then destroys everything and checks that memory comes back.
void replay_and_end(cuda_pool& pool, cudaGraph_t graph, cudaStream_t stream, int* turns) {
  gpu::stream other;
  cudaGraphExec_t replay = nullptr;
  gpu::require(cudaGraphInstantiate(&replay, graph, 0));
  for (int i = 0; i < 200; ++i) {
    gpu::require(cudaGraphLaunch(replay, stream));
    gpu::eager_turn(pool, body_bytes, gpu::old_pattern, other);
  }
  gpu::require(cudaDeviceSynchronize());
  CHECK_FALSE(gpu::mismatch());
  gpu::require(cudaGraphDestroy(graph));
  CHECK(pool.stats().captured > 0);
  gpu::require(cudaGraphExecDestroy(replay));
  CHECK(gpu::all_came_back(pool));
  gpu::require(cudaFree(turns));
}

void check_body(cudaGraphConditionalNodeType type) {
  gpu::prepare();
  cuda_pool pool;
  gpu::stream captured;
  int* turns = nullptr;
  gpu::require(cudaMalloc(&turns, sizeof(int)));
  gpu::require(cudaMemset(turns, 0, sizeof(int)));
  cudaGraph_t graph = nullptr;
  cudaGraphConditionalHandle handle{};
  gpu::require(cudaGraphCreate(&graph, 0));
  gpu::require(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  cudaGraph_t const body = add_conditional(graph, handle, type);
  gpu::require(cudaStreamBeginCaptureToGraph(captured, body, nullptr, nullptr, 0,
                                             cudaStreamCaptureModeGlobal));
  void* const p = pool.allocate(body_bytes, captured);
  gpu::fill(p, body_bytes, gpu::new_pattern, captured);
  gpu::check(p, body_bytes, gpu::new_pattern, captured);
  pool.deallocate(p, body_bytes, captured);
  CHECK(pool.allocate(body_bytes, captured) == p);
  gpu::fill(p, body_bytes, gpu::old_pattern, captured);
  gpu::check(p, body_bytes, gpu::old_pattern, captured);
  pool.deallocate(p, body_bytes, captured);
  if (type == cudaGraphCondTypeWhile) {
    count_down<<<1, 1, 0, captured>>>(handle, turns, 5);
  }
  cudaGraph_t ended = nullptr;
  gpu::require(cudaStreamEndCapture(captured, &ended));
  replay_and_end(pool, graph, captured, turns);
}

}  // namespace

TEST_CASE("memory of an IF body is kept until the whole graph is over") {
  check_body(cudaGraphCondTypeIf);
}

TEST_CASE("memory of a WHILE body serves every turn and is kept until the graph is over") {
  check_body(cudaGraphCondTypeWhile);
}

#endif
