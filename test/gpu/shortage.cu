// A full device, and pools with a limit.
#include "late_write.hpp"

#include <random>
#include <utility>
#include <vector>

using pagesift::cuda_pool;
using pagesift::gibibyte;
using pagesift::mebibyte;

namespace {

/// Takes all memory of the device but `left` bytes, or some hundred MiB more where the device does
/// not give all that it calls free.
class full_device {
 public:
  explicit full_device(std::size_t left) {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    gpu::require(cudaMemGetInfo(&free_bytes, &total_bytes));
    constexpr std::size_t step = 64 * mebibyte;
    for (std::size_t spare = 0; taken_ == nullptr && spare < 8 * step; spare += step) {
      REQUIRE(free_bytes > left + spare);
      if (cudaMalloc(&taken_, free_bytes - left - spare) != cudaSuccess) {
        taken_ = nullptr;
      }
    }
    (void)cudaGetLastError();
    REQUIRE(taken_ != nullptr);
  }
  ~full_device() { (void)cudaFree(taken_); }
  full_device(const full_device&) = delete;
  full_device& operator=(const full_device&) = delete;

 private:
  void* taken_ = nullptr;
};

}  // namespace

TEST_CASE("on a full device memory that is still in use is waited for in the first call") {
  gpu::prepare();
  cuda_pool pool;
  gpu::stream first;
  gpu::stream second;
  pool.deallocate(pool.allocate(1, second), 1, second);
  const full_device full{3 * gibibyte};
  for (const std::size_t bytes : {2 * gibibyte, 2 * gibibyte + 256 * mebibyte}) {
    CAPTURE(bytes);
    void* const p = pool.allocate(2 * gibibyte, first);
    gpu::delay(first);
    gpu::fill(p, 2 * gibibyte, gpu::old_pattern, first);
    pool.deallocate(p, 2 * gibibyte, first);
    void* const q = pool.allocate(bytes, second);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    gpu::fill(q, bytes, gpu::new_pattern, second);
    gpu::require(cudaDeviceSynchronize());
    gpu::check(q, bytes, gpu::new_pattern, second);
    second.synchronize();
    pool.deallocate(q, bytes, second);
  }
  CHECK_FALSE(gpu::mismatch());
}

TEST_CASE("a shortage on a full device says so with its numbers and leaves no last error") {
  gpu::prepare();
  cuda_pool pool;
  gpu::stream stream;
  void* const held = pool.allocate(mebibyte, stream);
  const full_device full{gibibyte};
  const pagesift::pool_stats before = pool.stats();
  try {
    (void)pool.allocate(8 * gibibyte, stream);
    FAIL_CHECK("nothing was thrown");
  } catch (const pagesift::out_of_memory& error) {
    CHECK(error.report().requested == 8 * gibibyte);
    CHECK(error.report().in_use == before.in_use);
    CHECK(error.report().free_bytes < 8 * gibibyte);
    CHECK(error.report().total_bytes > 8 * gibibyte);
  }
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(pool.stats().in_use == before.in_use);
  pool.deallocate(held, mebibyte, stream);
}

TEST_CASE("a retry after a failed allocation leaves no last error") {
  gpu::prepare();
  cuda_pool pool;
  gpu::stream stream;
  const full_device full{3 * gibibyte};
  pool.deallocate(pool.allocate(2 * gibibyte, stream), 2 * gibibyte, stream);
  const std::size_t larger = 2 * gibibyte + 512 * mebibyte;
  void* const p = pool.allocate(larger, stream);  // fits only once the other range is given back
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  gpu::fill(p, larger, gpu::new_pattern, stream);
  pool.deallocate(p, larger, stream);
  stream.synchronize();
}

TEST_CASE("frees and the end of a batch take no memory from a full device") {
  gpu::prepare();
  cuda_pool pool{gpu::eager_seals()};
  gpu::stream first;
  gpu::stream second;
  void* const p = pool.allocate(mebibyte, first);
  void* const q = pool.allocate(64 * mebibyte, second);
  const full_device full{64 * mebibyte};
  std::size_t free_before = 0;
  std::size_t free_after = 0;
  std::size_t total = 0;
  gpu::require(cudaMemGetInfo(&free_before, &total));
  const auto allocations = pool.stats().backend_allocations;
  pool.deallocate(p, mebibyte, first);
  pool.deallocate(q, 64 * mebibyte, second);
  pool.end_batch();
  pool.end_batch();
  gpu::require(cudaMemGetInfo(&free_after, &total));
  CHECK(pool.stats().backend_allocations == allocations);
  CHECK(free_after >= free_before);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("a pool with a limit can reach its limit") {
  gpu::prepare();
  pagesift::pool_options options;
  options.limit_bytes = gibibyte;
  cuda_pool pool{options};
  gpu::stream stream;
  pool.deallocate(pool.allocate(gibibyte / 2, stream), gibibyte / 2, stream);
  void* const p = pool.allocate(gibibyte, stream);
  gpu::fill(p, gibibyte, gpu::new_pattern, stream);
  pool.deallocate(p, gibibyte, stream);
  stream.synchronize();
  CHECK(pool.stats().peak_held <= gibibyte);
}

namespace {

struct live_block {
  void* p;
  std::size_t bytes;
  unsigned pattern;
  cudaStream_t stream;
};

/// From 1 MiB to 1 GiB, uniform in the logarithm, in words.
std::size_t random_size(std::mt19937_64& random) {
  const std::size_t step = mebibyte << (random() % 10);
  return step + random() % (step / 4) * 4;
}

}  // namespace

TEST_CASE("four streams keep 70 % of the device in use, and no request fails") {
  constexpr std::size_t looked_at = 64 * pagesift::kibibyte;
  gpu::prepare();
  cuda_pool pool;
  const gpu::stream streams[4];
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  gpu::require(cudaMemGetInfo(&free_bytes, &total_bytes));
  std::mt19937_64 random{1};
  std::vector<live_block> blocks;
  std::size_t in_use = 0;
  const auto free_last = [&] {
    const live_block& last = blocks.back();
    gpu::check(last.p, looked_at, last.pattern, last.stream);
    pool.deallocate(last.p, last.bytes, last.stream);
    in_use -= last.bytes;
    blocks.pop_back();
  };
  for (unsigned step = 0; step < 10000; ++step) {
    const std::size_t bytes = random_size(random);
    while (in_use + bytes > free_bytes / 10 * 7) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      free_last();
    }
    const cudaStream_t stream = streams[random() % 4];
    blocks.push_back({pool.allocate(bytes, stream), bytes, step, stream});
    gpu::fill(blocks.back().p, looked_at, step, stream);
    in_use += bytes;
  }
  while (!blocks.empty()) {
    free_last();
  }
  gpu::require(cudaDeviceSynchronize());
  CHECK_FALSE(gpu::mismatch());
}
