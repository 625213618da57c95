// A pool beside stream captures.
#include "late_write.hpp"

#include <thread>

using pagesift::cuda_pool;
using pagesift::mebibyte;

namespace {

/// Ends the capture of a fill of `p`, which must be valid, and checks that its graph replays.
void check_replays(cudaStream_t captured, void* p, std::size_t bytes, unsigned pattern) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replayable = nullptr;
  REQUIRE(cudaStreamEndCapture(captured, &graph) == cudaSuccess);
  gpu::require(cudaGraphInstantiate(&replayable, graph, 0));
  for (int replay = 0; replay < 3; ++replay) {
    gpu::fill(p, bytes, gpu::old_pattern, captured);
    gpu::require(cudaGraphLaunch(replayable, captured));
    gpu::check(p, bytes, pattern, captured);
  }
  gpu::require(cudaStreamSynchronize(captured));
  gpu::require(cudaGraphExecDestroy(replayable));
  gpu::require(cudaGraphDestroy(graph));
  CHECK_FALSE(gpu::mismatch());
}

}  // namespace

TEST_CASE("a request on a capturing stream is refused and the capture goes on") {
  gpu::prepare();
  cuda_pool pool;
  gpu::stream stream;
  void* const p = pool.allocate(mebibyte, stream);
  const pagesift::pool_stats before = pool.stats();
  gpu::require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK_THROWS_AS((void)pool.allocate(mebibyte, stream), pagesift::capture_error);
  gpu::fill(p, mebibyte, gpu::new_pattern, stream);
  CHECK_THROWS_AS((void)pool.allocate(4 * mebibyte, stream), pagesift::capture_error);
  CHECK(pool.stats().held == before.held);
  CHECK(pool.stats().in_use == before.in_use);
  check_replays(stream, p, mebibyte, gpu::new_pattern);
  pool.deallocate(p, mebibyte, stream);
}

TEST_CASE("a free on a capturing stream leaves the capture valid, and its block waits") {
  gpu::prepare();
  cuda_pool pool{gpu::eager_seals()};
  gpu::stream captured;
  gpu::stream other;
  void* const kept = pool.allocate(mebibyte, captured);
  void* const freed = pool.allocate(mebibyte, captured);
  gpu::require(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal));
  gpu::fill(kept, mebibyte, gpu::new_pattern, captured);
  pool.deallocate(freed, mebibyte, captured);
  void* const p = pool.allocate(mebibyte, other);
  CHECK(p != freed);
  pool.deallocate(p, mebibyte, other);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  check_replays(captured, kept, mebibyte, gpu::new_pattern);
  pool.deallocate(kept, mebibyte, captured);
}

TEST_CASE("frees, misses and growth in another thread leave a capture valid") {
  gpu::prepare();
  cuda_pool pool{gpu::eager_seals()};
  gpu::stream captured;
  gpu::stream first;
  gpu::stream second;
  void* const kept = pool.allocate(mebibyte, captured);
  gpu::require(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal));
  std::thread{[&] {
    for (int i = 0; i < 20; ++i) {
      void* const p = pool.allocate(4 * mebibyte, first);
      void* const q = pool.allocate(40 * mebibyte, second);
      gpu::fill(p, 4 * mebibyte, gpu::old_pattern, first);
      pool.deallocate(p, 4 * mebibyte, first);
      void* const r = pool.allocate(4 * mebibyte, second);
      pool.deallocate(q, 40 * mebibyte, second);
      pool.deallocate(r, 4 * mebibyte, second);
    }
  }}.join();
  gpu::fill(kept, mebibyte, gpu::new_pattern, captured);
  check_replays(captured, kept, mebibyte, gpu::new_pattern);
  pool.deallocate(kept, mebibyte, captured);
}

TEST_CASE("trimming while a capture is known leaves the capture valid") {
  gpu::prepare();
  cuda_pool pool;
  gpu::stream captured;
  gpu::stream other;
  void* const kept = pool.allocate(mebibyte, captured);
  void* const p = pool.allocate(64 * mebibyte, other);
  gpu::fill(p, 64 * mebibyte, gpu::old_pattern, other);
  gpu::require(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal));
  CHECK_THROWS_AS((void)pool.allocate(1, captured), pagesift::capture_error);
  pool.deallocate(p, 64 * mebibyte, other);
  pool.trim();
  gpu::fill(kept, mebibyte, gpu::new_pattern, captured);
  check_replays(captured, kept, mebibyte, gpu::new_pattern);
  pool.deallocate(kept, mebibyte, captured);
}
