// CUB's two-phase algorithms with temporary storage from a pool.
#include "device_work.hpp"

#include <pagesift/pagesift.hpp>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace {

using buffer = pagesift::device_buffer<int>;

std::vector<int> random_ints(std::size_t n, int end) {
  std::minstd_rand random{11};
  std::vector<int> values(n);
  for (int& value : values) {
    value = static_cast<int>(random() % static_cast<unsigned>(end));
  }
  return values;
}

std::vector<int> contents(const buffer& device) {
  std::vector<int> host(device.size());
  device.gather(host);
  return host;
}

/// Runs `call` twice; the second run must find its memory in the pool.
template <typename Call>
void run_twice(pagesift::device_pool& pool, cudaStream_t stream, Call&& call) {
  CHECK(pagesift::temp_storage(pool, stream, call) == cudaSuccess);
  const pagesift::pool_stats warm = pool.stats();
  CHECK(pagesift::temp_storage(pool, stream, call) == cudaSuccess);
  CHECK(pool.stats().backend_allocations == warm.backend_allocations);
  CHECK(pool.stats().in_use == warm.in_use);
}

TEST_CASE("reduce, scan and sort give what the standard library gives") {
  pagesift::device_pool pool;
  gpu::stream stream;
  for (const int n : {1, 1000, 300'007}) {
    CAPTURE(n);
    const auto count = static_cast<std::size_t>(n);
    const std::vector<int> host = random_ints(count, 1000);
    buffer in{count, pool, stream};
    buffer out{count, pool, stream};
    buffer sum{1, pool, stream};
    in.scatter(host);

    run_twice(pool, stream, [&](void* temp, std::size_t& bytes) {
      return cub::DeviceReduce::Sum(temp, bytes, in.data(), sum.data(), n, stream);
    });
    CHECK(contents(sum).front() == std::accumulate(host.begin(), host.end(), 0));

    run_twice(pool, stream, [&](void* temp, std::size_t& bytes) {
      return cub::DeviceScan::InclusiveSum(temp, bytes, in.data(), out.data(), n, stream);
    });
    std::vector<int> expected(count);
    std::partial_sum(host.begin(), host.end(), expected.begin());
    CHECK(contents(out) == expected);

    run_twice(pool, stream, [&](void* temp, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortKeys(temp, bytes, in.data(), out.data(), n, 0, 32, stream);
    });
    expected = host;
    std::sort(expected.begin(), expected.end());
    CHECK(contents(out) == expected);
  }
}

TEST_CASE("without a pool the default pool of the current device serves") {
  const std::vector<int> host = random_ints(10'000, 1000);
  buffer in{host.size()};
  buffer sum{1};
  in.scatter(host);
  const std::size_t in_use = pagesift::device_pool::default_pool().stats().in_use;
  const cudaError_t status =
      pagesift::temp_storage(cudaStream_t{nullptr}, [&](void* temp, std::size_t& bytes) {
        return cub::DeviceReduce::Sum(temp, bytes, in.data(), sum.data(), 10'000);
      });
  CHECK(status == cudaSuccess);
  CHECK(contents(sum).front() == std::accumulate(host.begin(), host.end(), 0));
  CHECK(pagesift::device_pool::default_pool().stats().in_use == in_use);
}

TEST_CASE("an error of CUB's second phase comes back, and the memory is returned") {
  pagesift::device_pool pool;
  buffer in{10'000, pool};
  buffer out{10'000, pool};
  in.scatter(random_ints(10'000, 1000));
  const std::size_t in_use = pool.stats().in_use;
  const cudaError_t status =
      pagesift::temp_storage(pool, nullptr, [&](void* temp, std::size_t& bytes) {
        std::size_t too_few = 1;
        return cub::DeviceRadixSort::SortKeys(temp, temp == nullptr ? bytes : too_few, in.data(),
                                              out.data(), 10'000);
      });
  CHECK(status == cudaErrorInvalidValue);
  CHECK(pool.stats().in_use == in_use);
}

TEST_CASE("streams that each run CUB without waiting get their own temporary storage") {
  constexpr std::size_t count = 200'003;
  const std::vector<int> host = random_ints(count, 1000);
  std::vector<int> expected = host;
  std::sort(expected.begin(), expected.end());
  pagesift::device_pool pool;
  std::vector<gpu::stream> streams(4);
  std::vector<buffer> in;
  std::vector<buffer> out;
  for (const gpu::stream& stream : streams) {
    in.emplace_back(count, pool, stream);
    out.emplace_back(count, pool, stream);
    in.back().scatter(host);
  }
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < streams.size(); ++i) {
      const cudaError_t status =
          pagesift::temp_storage(pool, streams[i], [&](void* temp, std::size_t& bytes) {
            return cub::DeviceRadixSort::SortKeys(temp, bytes, in[i].data(), out[i].data(),
                                                  static_cast<int>(count), 0, 32, streams[i]);
          });
      CHECK(status == cudaSuccess);
    }
    for (const buffer& result : out) {
      CHECK(contents(result) == expected);
    }
  }
}

}  // namespace
