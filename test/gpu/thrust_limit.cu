// Sorts that grow until array and temporary storage nearly fill a pool of many gigabytes.
#include <pagesift/pagesift.hpp>

#include <doctest/doctest.h>
#include <thrust/sort.h>
#include <thrust/tabulate.h>

#include <algorithm>

namespace {

/// Scrambles an index.
struct hash {
  __host__ __device__ unsigned operator()(std::size_t i) const {
    auto x = static_cast<unsigned>(i * 2654435761U);
    x ^= x >> 16;
    return x * 2246822519U;
  }
};

TEST_CASE("sorts that grow to a pool's limit never fail while memory is idle") {
  pagesift::pool_options options;
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  REQUIRE(cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess);
  options.limit_bytes = std::min(8 * pagesift::gibibyte, free_bytes / 2);
  pagesift::device_pool pool{options};

  // Temporary storage is up to 6 % larger than the array.
  const std::size_t largest = options.limit_bytes / 100 * 46;
  std::size_t steps = 0;
  for (std::size_t bytes = 64 * pagesift::mebibyte; bytes <= largest; bytes += bytes / 5) {
    pagesift::device_buffer<unsigned> keys{bytes / sizeof(unsigned), pool};
    thrust::tabulate(pool.policy(), keys.begin(), keys.end(), hash{});
    thrust::sort(pool.policy(), keys.begin(), keys.end());
    CHECK(thrust::is_sorted(pool.policy(), keys.begin(), keys.end()));
    ++steps;
  }
  CHECK(steps > 10);
  CHECK(pool.stats().in_use == 0);
  CHECK(pool.stats().peak_held <= options.limit_bytes);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

}  // namespace
