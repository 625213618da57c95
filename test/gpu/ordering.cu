// When another stream gets a block.
#include "late_write.hpp"

#include <thread>
#include <vector>

using pagesift::cuda_pool;
using pagesift::mebibyte;

TEST_CASE("a block is not written by another stream before its last use, whatever the sealing") {
  for (const std::size_t seal_bytes : {std::size_t{1}, 32 * mebibyte}) {
    CAPTURE(seal_bytes);
    for (const std::size_t bytes : {std::size_t{256}, mebibyte, 40 * mebibyte}) {
      CAPTURE(bytes);
      gpu::prepare();
      pagesift::pool_options options;
      options.seal_bytes = seal_bytes;
      cuda_pool pool{options};
      gpu::stream first;
      gpu::stream second;
      gpu::gate gate;
      pool.deallocate(pool.allocate(bytes, second), bytes, second);
      for (int round = 0; round < 20; ++round) {
        gpu::leave_late_write(pool, bytes, gate, first);
        gpu::write_and_check(pool, bytes, gate, second);
      }
      CHECK_FALSE(gpu::mismatch());
      CHECK_FALSE(gate.expired());
    }
  }
}

TEST_CASE("a block that another stream must have is ordered by a wait on the device") {
  gpu::prepare();
  pagesift::pool_options options = gpu::eager_seals();
  options.limit_bytes = 64 * mebibyte;
  cuda_pool pool{options};
  gpu::stream first;
  gpu::stream second;
  gpu::gate gate;
  pool.deallocate(pool.allocate(1, second), 1, second);
  gpu::leave_late_write(pool, 40 * mebibyte, gate, first);
  gpu::write_and_check(pool, 40 * mebibyte, gate, second);
  CHECK_FALSE(gpu::mismatch());
  CHECK_FALSE(gate.expired());
  CHECK(pool.stats().stream_waits >= 1);
}

TEST_CASE("a block freed while its event is being recorded is not taken by another thread early") {
  gpu::prepare();
  cuda_pool pool{gpu::eager_seals()};
  constexpr std::size_t bytes = 64 * pagesift::kibibyte;
  const auto take_write_check_free = [&](unsigned pattern) {
    gpu::stream own;
    for (int i = 0; i < 2000; ++i) {
      void* const p = pool.allocate(bytes, own);
      gpu::fill(p, bytes, pattern, own);
      gpu::check(p, bytes, pattern, own);
      pool.deallocate(p, bytes, own);
    }
    own.synchronize();
  };
  std::thread other{[&] { take_write_check_free(1); }};
  take_write_check_free(2);
  other.join();
  CHECK_FALSE(gpu::mismatch());
}

TEST_CASE("a stream works on while another one is held back, as long as memory is free") {
  gpu::prepare();
  cuda_pool pool{gpu::eager_seals()};
  gpu::stream held_back;
  gpu::stream independent;
  gpu::gate gate;
  pool.deallocate(pool.allocate(mebibyte, independent), mebibyte, independent);
  gpu::leave_late_write(pool, mebibyte, gate, held_back);
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) {
    blocks.push_back(pool.allocate(mebibyte, independent));
    gpu::fill(blocks.back(), mebibyte, gpu::new_pattern, independent);
  }
  independent.synchronize();
  CHECK((gpu::one_kernel_at_a_time() || !gpu::idle(held_back)));
  CHECK(pool.stats().stream_waits == 0);
  gate.open();
  for (void* const block : blocks) {
    pool.deallocate(block, mebibyte, independent);
  }
  CHECK_FALSE(gate.expired());
}

TEST_CASE("another thread's per-thread default stream does not get a block early") {
  gpu::prepare();
  cuda_pool pool;
  gpu::gate gate;
  for (int round = 0; round < 20; ++round) {
    gpu::leave_late_write(pool, mebibyte, gate, cudaStreamPerThread);
    std::thread{[&] { gpu::write_and_check(pool, mebibyte, gate, cudaStreamPerThread); }}.join();
  }
  CHECK_FALSE(gpu::mismatch());
  CHECK_FALSE(gate.expired());
}

TEST_CASE("a search that finds work unfinished leaves no last error") {
  gpu::prepare();
  cuda_pool pool{gpu::eager_seals()};
  gpu::stream first;
  gpu::stream second;
  gpu::gate gate;
  pool.deallocate(pool.allocate(1, second), 1, second);
  gpu::leave_late_write(pool, mebibyte, gate, first);
  void* const p = pool.allocate(mebibyte, second);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  gate.open();
  pool.deallocate(p, mebibyte, second);
  CHECK_FALSE(gate.expired());
}

TEST_CASE("a block that another stream uses too is not its own stream's before that ends") {
  for (const std::size_t bytes : {std::size_t{256}, mebibyte, 40 * mebibyte}) {
    CAPTURE(bytes);
    gpu::prepare();
    cuda_pool pool;
    gpu::stream own;
    gpu::stream other;
    gpu::gate gate;
    for (int round = 0; round < 20; ++round) {
      void* const p = pool.allocate(bytes, own);
      gate.close(other);
      gpu::fill(p, bytes, gpu::old_pattern, other);
      pool.record_use(p, bytes, other);
      pool.deallocate(p, bytes, own);
      gpu::write_and_check(pool, bytes, gate, own);
    }
    CHECK_FALSE(gpu::mismatch());
    CHECK_FALSE(gate.expired());
  }
}

TEST_CASE("on a full pool the stream of the free waits for the other's use, on the device") {
  gpu::prepare();
  pagesift::pool_options options;
  options.limit_bytes = 64 * mebibyte;
  cuda_pool pool{options};
  gpu::stream own;
  gpu::stream other;
  gpu::gate gate;
  void* const p = pool.allocate(40 * mebibyte, own);
  gate.close(other);
  gpu::fill(p, 40 * mebibyte, gpu::old_pattern, other);
  pool.record_use(p, 40 * mebibyte, other);
  pool.deallocate(p, 40 * mebibyte, own);
  gpu::write_and_check(pool, 40 * mebibyte, gate, own);
  CHECK_FALSE(gpu::mismatch());
  CHECK_FALSE(gate.expired());
  CHECK(pool.stats().stream_waits >= 1);
}

TEST_CASE("four streams that are all held back get memory without waiting for each other") {
  gpu::prepare();
  cuda_pool pool;
  const gpu::stream streams[4];
  gpu::gate gate;
  for (const gpu::stream& stream : streams) {
    gate.close(stream);
  }
  for (int round = 0; round < 10; ++round) {
    for (const gpu::stream& stream : streams) {
      void* const p = pool.allocate(8 * mebibyte, stream);
      gpu::fill(p, 8 * mebibyte, gpu::new_pattern, stream);
      pool.deallocate(p, 8 * mebibyte, stream);
    }
  }
  CHECK((gpu::one_kernel_at_a_time() || !gpu::idle(streams[0])));
  CHECK(pool.stats().stream_waits == 0);
  gate.open();
  gpu::require(cudaDeviceSynchronize());
  CHECK_FALSE(gate.expired());
}
