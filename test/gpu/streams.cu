// Streams that come and go.
#include "late_write.hpp"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

using pagesift::cuda_pool;
using pagesift::gibibyte;
using pagesift::mebibyte;

TEST_CASE("a new stream with a destroyed one's handle does not get its memory early") {
  gpu::prepare();
  cuda_pool pool;
  gpu::gate gate;
  int handles_seen_again = 0;
  for (int round = 0; round < 50; ++round) {
    cudaStream_t old = nullptr;
    {
      const gpu::stream destroyed;
      old = destroyed;
      gpu::leave_late_write(pool, mebibyte, gate, destroyed);
    }
    const gpu::stream fresh;
    handles_seen_again += fresh == old ? 1 : 0;
    gpu::write_and_check(pool, mebibyte, gate, fresh);
  }
  CHECK_FALSE(gpu::mismatch());
  CHECK_FALSE(gate.expired());
  CHECK((gpu::one_kernel_at_a_time() || handles_seen_again > 0));
}

TEST_CASE("memory of destroyed streams is found again without touching them") {
  gpu::prepare();
  pagesift::pool_options options;
  options.limit_bytes = 256 * mebibyte;
  cuda_pool pool{options};
  {
    std::vector<std::unique_ptr<gpu::stream>> streams;
    for (int i = 0; i < 32; ++i) {
      streams.push_back(std::make_unique<gpu::stream>());
      void* const p = pool.allocate(4 * mebibyte, *streams.back());
      gpu::fill(p, 4 * mebibyte, gpu::old_pattern, *streams.back());
      pool.deallocate(p, 4 * mebibyte, *streams.back());
    }
  }
  void* const large = pool.allocate(200 * mebibyte, nullptr);
  gpu::fill(large, 200 * mebibyte, gpu::new_pattern, nullptr);
  gpu::check(large, 200 * mebibyte, gpu::new_pattern, nullptr);
  pool.deallocate(large, 200 * mebibyte, nullptr);
  gpu::require(cudaDeviceSynchronize());
  CHECK_FALSE(gpu::mismatch());
}

TEST_CASE("ten thousand streams leave a bounded number of events and bounded memory") {
  gpu::prepare();
  cuda_pool pool;
  constexpr std::size_t bytes = mebibyte;
  for (int i = 0; i < 10000; ++i) {
    const gpu::stream stream;
    void* const p = pool.allocate(bytes, stream);
    gpu::fill(p, 4096, gpu::new_pattern, stream);
    pool.deallocate(p, bytes, stream);
  }
  CHECK(pool.stats().live_events <= 1024);
  CHECK(pool.stats().streams <= 1024);
  CHECK(pool.stats().held <= gibibyte);
}

TEST_CASE("a large block on a new stream each time does not pile up") {
  gpu::prepare();
  cuda_pool pool;
  for (int i = 0; i < 64; ++i) {
    const gpu::stream stream;
    void* const p = pool.allocate(gibibyte, stream);
    gpu::fill(p, gibibyte, gpu::new_pattern, stream);
    pool.deallocate(p, gibibyte, stream);
    stream.synchronize();
  }
  CHECK(pool.stats().peak_held <= 2 * gibibyte);
}

TEST_CASE("a pool waits for the work that still uses its memory before it is destroyed") {
  gpu::prepare();
  gpu::stream stream;
  gpu::gate gate;
  std::atomic<bool> destroying{false};
  auto pool = std::make_unique<cuda_pool>();
  gpu::leave_late_write(*pool, mebibyte, gate, stream);
  std::thread opener{[&] {
    while (!destroying) {
    }
    gate.open();
  }};
  destroying = true;
  pool.reset();
  CHECK(gpu::idle(stream));
  opener.join();
  CHECK_FALSE(gate.expired());
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}
