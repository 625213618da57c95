// When Thrust gives temporary storage back, and who may have it then.
#include "each_policy.hpp"
#include "fake_cuda.hpp"

#include <thrust/sort.h>

namespace pagesift_test {
namespace {

constexpr int n = 5000;

/// Memory that a sort of `n` ints takes next, because it was given back last.
void* next_block_of_a_sort(pagesift::device_pool& pool, std::size_t bytes, cudaStream_t stream) {
  void* const p = pool.allocate(bytes, stream);
  pool.deallocate(p, bytes, stream);
  return p;
}

/// The bytes of temporary storage that a sort of `n` ints asks for, as a block size.
std::size_t bytes_of_a_sort(const thrust::device_ptr<int>& first) {
  pagesift::device_pool pool;
  thrust::sort(pool.policy(), first, first + n);
  REQUIRE(pool.stats().classes.size() == 1);
  return pool.stats().classes.front().block_bytes;
}

TEST_CASE("a sort gives its memory back while its kernels run; only its stream gets it then") {
  std::vector<int> values(n, 1);
  const thrust::device_ptr<int> first{values.data()};
  const std::size_t bytes = bytes_of_a_sort(first);
  const side_stream sorting;
  const side_stream other;
  pagesift::device_pool pool;
  void* const block = next_block_of_a_sort(pool, bytes, sorting.get());

  bool seen = false;
  fake_cuda::on_call("cudaStreamSynchronize", [&] {
    if (seen) {
      return;
    }
    seen = true;
    CHECK(pool.stats().in_use == 0);
    CHECK(fake_cuda::pending(sorting.get()));
    void* const elsewhere = pool.allocate(bytes, other.get());
    void* const here = pool.allocate(bytes, sorting.get());
    CHECK(elsewhere != block);
    CHECK(here == block);
    pool.deallocate(elsewhere, bytes, other.get());
    pool.deallocate(here, bytes, sorting.get());
  });
  thrust::sort(pool.policy(sorting.get()), first, first + n);
  fake_cuda::on_call("cudaStreamSynchronize", {});
  CHECK(seen);
}

TEST_CASE("after an algorithm that does not wait, another stream gets its memory when it is done") {
  std::vector<int> values(n, 1);
  const thrust::device_ptr<int> first{values.data()};
  const std::size_t bytes = bytes_of_a_sort(first);
  const side_stream sorting;
  const side_stream other;
  pagesift::device_pool pool;
  void* const block = next_block_of_a_sort(pool, bytes, sorting.get());

  thrust::sort(pool.policy_nosync(sorting.get()), first, first + n);
  CHECK(fake_cuda::pending(sorting.get()));
  void* const too_early = pool.allocate(bytes, other.get());
  CHECK(too_early != block);
  CHECK(fake_cuda::pending(sorting.get()));  // nobody waited for it

  // The miss above made the pool seal the sort's memory at the stream's next free.
  thrust::sort(pool.policy_nosync(sorting.get()), first, first + n);
  fake_cuda::complete(sorting.get());
  void* const late_enough = pool.allocate(bytes, other.get());
  CHECK(late_enough == block);
  pool.deallocate(too_early, bytes, other.get());
  pool.deallocate(late_enough, bytes, other.get());
}

TEST_CASE("a block that a shortage denies is an exception, not an empty sort") {
  std::vector<int> values(n, 1);
  const thrust::device_ptr<int> first{values.data()};
  const side_stream side;
  pagesift::pool_options options;
  options.limit_bytes = 4 * pagesift::mebibyte;
  pagesift::device_pool pool{options};
  const std::size_t piece = 64 * pagesift::kibibyte;
  std::vector<void*> all;
  const auto take_all = [&] {
    for (;;) {
      all.push_back(pool.allocate(piece, side.get()));
    }
  };
  CHECK_THROWS_AS(take_all(), pagesift::out_of_memory);
  const auto sort = [&](const auto& policy) {
    fake_cuda::clear_log();
    CHECK_THROWS_AS(thrust::sort(policy, first, first + n), pagesift::out_of_memory);
    CHECK_THROWS_AS(thrust::sort(policy, first, first + n, by_last_digits{}),
                    pagesift::out_of_memory);
    CHECK(fake_cuda::count("cudaLaunchKernel") == 0);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
  };
  sort(pool.policy(side.get()));
  sort(pool.policy_nosync(side.get()));
  for (void* const p : all) {
    pool.deallocate(p, piece, side.get());
  }
  CHECK_NOTHROW(thrust::sort(pool.policy(side.get()), first, first + n));
}

TEST_CASE("an algorithm on a capturing stream gets graph memory and leaves the capture valid") {
  std::vector<int> values(n, 1);
  const thrust::device_ptr<int> first{values.data()};
  const side_stream side;
  pagesift::device_pool pool;
  REQUIRE(cudaStreamBeginCapture(side.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK_NOTHROW(thrust::sort(pool.policy_nosync(side.get()), first, first + n));
  CHECK(pool.stats().captured > 0);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(side.get(), &graph) == cudaSuccess);
  CHECK(graph != nullptr);
}

}  // namespace
}  // namespace pagesift_test
