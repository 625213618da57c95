// Graphs whose memory comes from a pool.
#include "captured_graph.hpp"
#include "late_write.hpp"

using pagesift::cuda_pool;
using pagesift::mebibyte;

namespace {

constexpr std::size_t bytes = 4 * mebibyte;

/// Captures a fill of a block that is checked and freed within the capture.
void* capture_turn(cuda_pool& pool, unsigned value, cudaStream_t stream) {
  void* const p = pool.allocate(bytes, stream);
  gpu::fill(p, bytes, value, stream);
  gpu::check(p, bytes, value, stream);
  pool.deallocate(p, bytes, stream);
  return p;
}

}  // namespace

TEST_CASE("eager memory is never a graph's, and replays are exact beside eager work") {
  gpu::prepare();
  cuda_pool pool{gpu::eager_seals()};
  gpu::stream captured;
  gpu::stream other;
  gpu::begin_capture(captured);
  void* const p = capture_turn(pool, gpu::new_pattern, captured);
  const gpu::captured_graph graph{captured};
  void* const eager = pool.allocate(bytes, other);
  CHECK(eager != p);
  gpu::fill(eager, bytes, gpu::old_pattern, other);
  for (int replay = 0; replay < 1000; ++replay) {
    graph.launch(captured);
    gpu::eager_turn(pool, bytes, gpu::old_pattern + static_cast<unsigned>(replay), other);
    gpu::check(eager, bytes, gpu::old_pattern, other);
  }
  gpu::require(cudaDeviceSynchronize());
  CHECK_FALSE(gpu::mismatch());
  pool.deallocate(eager, bytes, other);
}

TEST_CASE("the memory comes back when graph, executable and the last launch are over") {
  gpu::prepare();
  cuda_pool pool;
  gpu::stream captured;
  gpu::begin_capture(captured);
  capture_turn(pool, gpu::new_pattern, captured);
  {
    const gpu::captured_graph graph{captured};
    gpu::delay(captured);
    graph.launch(captured);
  }
  CHECK(pool.stats().captured == bytes);
  CHECK(gpu::all_came_back(pool));
  pool.trim();
  CHECK(pool.stats().held == 0);
}

TEST_CASE("branches of a capture share no memory until they are joined") {
  gpu::prepare();
  cuda_pool pool;
  gpu::stream first;
  gpu::stream second;
  gpu::begin_capture(first);
  void* const start = pool.allocate(bytes, first);
  gpu::fill(start, bytes, gpu::old_pattern, first);
  gpu::order(first, second);
  void* const p = capture_turn(pool, gpu::new_pattern, first);
  void* const q = capture_turn(pool, gpu::old_pattern, second);
  CHECK(p != q);
  CHECK(capture_turn(pool, gpu::old_pattern, first) == p);
  CHECK(capture_turn(pool, gpu::new_pattern, second) == q);
  gpu::order(second, first);
  gpu::check(start, bytes, gpu::old_pattern, first);
  void* const both[] = {pool.allocate(bytes, first), pool.allocate(bytes, first)};
  CHECK(((both[0] == p && both[1] == q) || (both[0] == q && both[1] == p)));
  for (void* const block : both) {
    gpu::fill(block, bytes, gpu::new_pattern, first);
    pool.deallocate(block, bytes, first);
  }
  pool.deallocate(start, bytes, first);
  const gpu::captured_graph graph{first};
  for (int replay = 0; replay < 1000; ++replay) {
    graph.launch(first);
    gpu::eager_turn(pool, bytes, gpu::old_pattern, second);
  }
  gpu::require(cudaDeviceSynchronize());
  CHECK_FALSE(gpu::mismatch());
}

TEST_CASE("a graph that is instantiated again keeps its memory") {
  gpu::prepare();
  cuda_pool pool;
  gpu::stream captured;
  gpu::begin_capture(captured);
  capture_turn(pool, gpu::new_pattern, captured);
  cudaGraph_t graph = nullptr;
  gpu::require(cudaStreamEndCapture(captured, &graph));
  for (int i = 0; i < 10; ++i) {
    cudaGraphExec_t replay = nullptr;
    gpu::require(cudaGraphInstantiate(&replay, graph, 0));
    gpu::require(cudaGraphLaunch(replay, captured));
    gpu::eager_turn(pool, bytes, gpu::old_pattern, captured);
    gpu::require(cudaGraphExecDestroy(replay));
    CHECK(pool.stats().captured == bytes);
  }
  gpu::require(cudaGraphDestroy(graph));
  CHECK(gpu::all_came_back(pool));
  CHECK_FALSE(gpu::mismatch());
}

TEST_CASE("an updated executable keeps the memory of the graph it launches") {
  gpu::prepare();
  cuda_pool pool;
  gpu::stream captured;
  gpu::begin_capture(captured);
  capture_turn(pool, gpu::old_pattern, captured);
  cudaGraphExec_t replay = nullptr;
  {
    cudaGraph_t first = nullptr;
    gpu::require(cudaStreamEndCapture(captured, &first));
    gpu::require(cudaGraphInstantiate(&replay, first, 0));
    gpu::require(cudaGraphDestroy(first));
  }
  gpu::begin_capture(captured);
  capture_turn(pool, gpu::new_pattern, captured);
  CHECK(pool.stats().captured == 2 * bytes);
  cudaGraph_t second = nullptr;
  cudaGraphExecUpdateResultInfo info{};
  gpu::require(cudaStreamEndCapture(captured, &second));
  gpu::require(cudaGraphExecUpdate(replay, second, &info));
  gpu::require(cudaGraphDestroy(second));
  for (int i = 0; i < 100; ++i) {
    gpu::require(cudaGraphLaunch(replay, captured));
    gpu::eager_turn(pool, bytes, gpu::old_pattern, captured);
  }
  gpu::require(cudaStreamSynchronize(captured));
  CHECK(pool.stats().captured >= bytes);
  gpu::require(cudaGraphExecDestroy(replay));
  CHECK(gpu::all_came_back(pool));
  CHECK_FALSE(gpu::mismatch());
}

TEST_CASE("an invalidated capture gets a typed error and gives its memory back") {
  gpu::prepare();
  cuda_pool pool;
  gpu::stream captured;
  gpu::stream other;
  gpu::begin_capture(captured);
  capture_turn(pool, gpu::new_pattern, captured);
  CHECK(cudaStreamQuery(other) == cudaErrorStreamCaptureUnsupported);
  (void)cudaGetLastError();
  CHECK_THROWS_AS((void)pool.allocate(bytes, captured), pagesift::capture_error);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(captured, &graph) == cudaErrorStreamCaptureInvalidated);
  (void)cudaGetLastError();
  CHECK(gpu::all_came_back(pool));
}

TEST_CASE("a block from before a capture and freed in it stays the graph's") {
  gpu::prepare();
  cuda_pool pool{gpu::eager_seals()};
  gpu::stream captured;
  gpu::stream other;
  void* const p = pool.allocate(bytes, captured);
  gpu::fill(p, bytes, gpu::old_pattern, captured);
  gpu::begin_capture(captured);
  capture_turn(pool, gpu::new_pattern, captured);  // tells the pool of the capture
  gpu::fill(p, bytes, gpu::new_pattern, captured);
  gpu::check(p, bytes, gpu::new_pattern, captured);
  pool.deallocate(p, bytes, captured);
  {
    const gpu::captured_graph graph{captured};
    for (int replay = 0; replay < 100; ++replay) {
      graph.launch(captured);
      gpu::eager_turn(pool, bytes, gpu::old_pattern, other);
      pool.trim();
    }
    gpu::require(cudaDeviceSynchronize());
  }
  CHECK(gpu::all_came_back(pool));
  CHECK_FALSE(gpu::mismatch());
  pool.trim();
  CHECK(pool.stats().held == 0);
}

TEST_CASE("a pool that ends before its graph leaves it its memory") {
  gpu::prepare();
  gpu::stream captured;
  gpu::begin_capture(captured);
  {
    cuda_pool pool;
    capture_turn(pool, gpu::new_pattern, captured);
  }
  const gpu::captured_graph graph{captured};
  for (int replay = 0; replay < 10; ++replay) {
    graph.launch(captured);
  }
  gpu::require(cudaDeviceSynchronize());
  CHECK_FALSE(gpu::mismatch());
}
