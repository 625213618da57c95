// What a pool does beside captures, and what its fence waits for.
#include "captured_graph.hpp"
#include "late_write.hpp"

#include <thread>

using pagesift::cuda_pool;
using pagesift::mebibyte;

namespace {

const cudaStreamCaptureMode all_modes[] = {
    cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed};

/// Misses, growth, seals, trims, frees without a stream, a shortage.
void work_hard(cuda_pool& pool, cudaStream_t first, cudaStream_t second) {
  for (int i = 0; i < 20; ++i) {
    gpu::eager_turn(pool, 4 * mebibyte, gpu::old_pattern, first);
    gpu::eager_turn(pool, 40 * mebibyte, gpu::old_pattern, second);
    gpu::eager_turn(pool, 4 * mebibyte, gpu::new_pattern, second);
    if (i % 5 == 0) {
      pool.trim();
    }
  }
  gpu::eager_turn(pool, 200 * mebibyte, gpu::new_pattern, first);
  gpu::eager_turn(pool, 220 * mebibyte, gpu::new_pattern, second);  // only in the place of that
  CHECK_THROWS_AS((void)pool.allocate(255 * mebibyte, first), pagesift::out_of_memory);
  pool.deallocate_sync(pool.allocate_sync(mebibyte), mebibyte);
  pool.retire(first);
  pool.end_batch();
}

pagesift::pool_options limited() {
  pagesift::pool_options options = gpu::eager_seals();
  options.limit_bytes = 256 * mebibyte;
  return options;
}

void check_beside_capture(cudaStreamCaptureMode mode, bool in_another_thread, bool known) {
  CAPTURE(mode);
  CAPTURE(in_another_thread);
  CAPTURE(known);
  gpu::prepare();
  cuda_pool pool{limited()};
  gpu::stream captured;
  gpu::stream first;
  gpu::stream second;
  void* const kept = pool.allocate(mebibyte, captured);
  gpu::begin_capture(captured, mode);
  void* const own = known ? pool.allocate(mebibyte, captured) : nullptr;
  if (in_another_thread) {
    std::thread{[&] { work_hard(pool, first, second); }}.join();
  } else {
    work_hard(pool, first, second);
  }
  gpu::fill(kept, mebibyte, gpu::new_pattern, captured);
  if (known) {
    gpu::fill(own, mebibyte, gpu::old_pattern, captured);
    gpu::check(own, mebibyte, gpu::old_pattern, captured);
    pool.deallocate(own, mebibyte, captured);
  }
  const gpu::captured_graph graph{captured};
  for (int replay = 0; replay < 3; ++replay) {
    gpu::fill(kept, mebibyte, gpu::old_pattern, captured);
    graph.launch(captured);
    gpu::check(kept, mebibyte, gpu::new_pattern, captured);
  }
  gpu::require(cudaDeviceSynchronize());
  CHECK_FALSE(gpu::mismatch());
  pool.deallocate(kept, mebibyte, captured);
}

}  // namespace

TEST_CASE("whatever a pool does leaves captures of every mode valid, known to it or not") {
  for (const cudaStreamCaptureMode mode : all_modes) {
    for (const bool in_another_thread : {true, false}) {
      for (const bool known : {true, false}) {
        check_beside_capture(mode, in_another_thread, known);
      }
    }
  }
}

TEST_CASE("frees on a stream whose capture the pool never heard of leave the capture valid") {
  for (const cudaStreamCaptureMode mode : all_modes) {
    for (const bool sealed : {false, true}) {
      CAPTURE(mode);
      CAPTURE(sealed);
      gpu::prepare();
      cuda_pool pool{sealed ? gpu::eager_seals() : pagesift::pool_options{}};
      gpu::stream captured;
      gpu::stream other;
      gpu::eager_turn(pool, 256, gpu::old_pattern, other);
      void* const small = pool.allocate(mebibyte, captured);
      void* const large = pool.allocate(40 * mebibyte, captured);
      gpu::begin_capture(captured, mode);
      pool.deallocate(small, mebibyte, captured);
      gpu::eager_turn(pool, mebibyte, gpu::new_pattern, other);
      pool.deallocate(large, 40 * mebibyte, captured);
      gpu::eager_turn(pool, 40 * mebibyte, gpu::new_pattern, other);
      pool.trim();
      CHECK(cudaPeekAtLastError() == cudaSuccess);
      const gpu::captured_graph graph{captured};
      gpu::require(cudaDeviceSynchronize());
      CHECK_FALSE(gpu::mismatch());
    }
  }
}

TEST_CASE("a shortage on a capturing stream is out_of_memory, and the capture goes on") {
  for (const cudaStreamCaptureMode mode : all_modes) {
    for (const auto memory : {pagesift::backing::plain, pagesift::backing::virtual_memory}) {
      CAPTURE(mode);
      CAPTURE(static_cast<int>(memory));
      gpu::prepare();
      pagesift::pool_options options = limited();
      options.backing = memory;
      cuda_pool pool{options};
      gpu::stream captured;
      gpu::stream other;
      void* const kept = pool.allocate(64 * mebibyte, other);
      gpu::eager_turn(pool, 100 * mebibyte, gpu::old_pattern, other);
      gpu::begin_capture(captured, mode);
      gpu::eager_turn(pool, mebibyte, gpu::old_pattern, captured);
      CHECK_THROWS_AS((void)pool.allocate(240 * mebibyte, captured), pagesift::out_of_memory);
      CHECK(cudaPeekAtLastError() == cudaSuccess);
      gpu::eager_turn(pool, mebibyte, gpu::new_pattern, captured);
      const gpu::captured_graph graph{captured};
      graph.launch(other);
      gpu::require(cudaDeviceSynchronize());
      CHECK_FALSE(gpu::mismatch());
      pool.deallocate(kept, 64 * mebibyte, other);
    }
  }
}

TEST_CASE("a fence waits for independent, blocking and default streams and for graph launches") {
  gpu::prepare();
  cuda_pool pool;
  gpu::stream independent;
  gpu::stream launching;
  gpu::stream captured;
  cudaStream_t blocking = nullptr;
  gpu::require(cudaStreamCreate(&blocking));
  gpu::begin_capture(captured);
  gpu::delay(captured);
  {
    const gpu::captured_graph graph{captured};
    gpu::begin_capture(captured);  // one goes on meanwhile
    gpu::delay(independent);
    gpu::delay(blocking);
    gpu::delay(cudaStreamPerThread);
    graph.launch(launching);
    CHECK(pool.backend().fence().ok());
    cudaGraph_t still_valid = nullptr;
    CHECK(cudaStreamEndCapture(captured, &still_valid) == cudaSuccess);
    CHECK(gpu::idle(independent));
    CHECK(gpu::idle(blocking));
    CHECK(gpu::idle(cudaStreamPerThread));
    CHECK(gpu::idle(launching));
    gpu::require(cudaGraphDestroy(still_valid));
  }
  gpu::require(cudaStreamDestroy(blocking));
}

TEST_CASE("the end of a pool leaves captures valid") {
  gpu::prepare();
  gpu::stream captured;
  gpu::stream other;
  {
    cuda_pool pool;
    gpu::eager_turn(pool, mebibyte, gpu::old_pattern, other);
    gpu::begin_capture(captured);
  }
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(captured, &graph) == cudaSuccess);
  gpu::require(cudaGraphDestroy(graph));
}
