// Thrust's and CUB's algorithms captured through a pool and replayed beside eager work.
#include "captured_graph.hpp"

#include <pagesift/pagesift.hpp>

#include <cub/device/device_reduce.cuh>
#include <thrust/device_ptr.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace {

using captured_values = pagesift::device_buffer<unsigned>;

constexpr std::size_t value_count = 100'003;
constexpr int replays = 1000;

struct square {
  __host__ __device__ unsigned operator()(unsigned x) const { return x * x; }
};

std::vector<unsigned> random_values(unsigned seed) {
  std::minstd_rand random{seed};
  std::vector<unsigned> values(value_count);
  std::generate(values.begin(), values.end(), [&] { return static_cast<unsigned>(random()); });
  return values;
}

/// What the graph makes of `in`, worked out on the host.
struct expectation {
  explicit expectation(std::vector<unsigned> in) : sorted{std::move(in)}, scanned(value_count) {
    std::transform(sorted.begin(), sorted.end(), sorted.begin(), square{});
    std::sort(sorted.begin(), sorted.end());
    std::partial_sum(sorted.begin(), sorted.end(), scanned.begin());
    sum = scanned.back();
  }

  std::vector<unsigned> sorted;
  std::vector<unsigned> scanned;
  unsigned sum = 0;
};

/// Squares, sorts, scans with Thrust; adds up with CUB. All temporary storage is the pool's, and
/// the squares go into a block that lives within the capture only.
template <typename Policy>
void submit(pagesift::device_pool& pool, const Policy& policy, const captured_values& in,
            captured_values& sorted, captured_values& scanned, captured_values& sum,
            cudaStream_t stream) {
  auto* const squares =
      static_cast<unsigned*>(pool.allocate(value_count * sizeof(unsigned), stream));
  const thrust::device_ptr<unsigned> first{squares};
  thrust::transform(policy, in.begin(), in.end(), first, square{});
  thrust::sort(policy, first, first + value_count);
  gpu::require(cudaMemcpyAsync(sorted.data(), squares, value_count * sizeof(unsigned),
                               cudaMemcpyDeviceToDevice, stream));
  pool.deallocate(squares, value_count * sizeof(unsigned), stream);
  thrust::inclusive_scan(policy, sorted.begin(), sorted.end(), scanned.begin());
  gpu::require(pagesift::temp_storage(pool, stream, [&](void* temp, std::size_t& bytes) {
    return cub::DeviceReduce::Sum(temp, bytes, sorted.data(), sum.data(),
                                  static_cast<int>(value_count), stream);
  }));
}

bool matches(const captured_values& device, const std::vector<unsigned>& host) {
  std::vector<unsigned> seen(device.size());
  device.gather(seen);
  return seen == host;
}

/// Sorts on other streams through the same pool, with storage of many sizes.
void eager_work(pagesift::device_pool& pool, cudaStream_t stream, std::size_t size) {
  captured_values keys{size, pool, stream};
  gpu::require(cudaMemsetAsync(keys.data(), 0x5a, size * sizeof(unsigned), stream));
  thrust::sort(pool.policy_nosync(stream), keys.begin(), keys.end());
}

}  // namespace

TEST_CASE("square, sort, scan and reduce replay 1,000 times beside eager work, exact") {
  pagesift::device_pool pool;
  gpu::stream own;
  gpu::stream other;
  captured_values in{value_count, pool, own};
  captured_values sorted{value_count, pool, own};
  captured_values scanned{value_count, pool, own};
  captured_values sum{1, pool, own};
  {
    gpu::begin_capture(own);
    submit(pool, pool.policy_nosync(own), in, sorted, scanned, sum, own);
    const gpu::captured_graph graph{own};
    CHECK(pool.stats().captured > 0);
    for (int replay = 0; replay < replays; ++replay) {
      const bool look = replay % 100 == 99;
      if (replay % 100 == 0) {
        in.scatter(random_values(static_cast<unsigned>(replay)));
      }
      graph.launch(own);
      eager_work(pool, other, 1000 + static_cast<std::size_t>(replay) * 97);
      if (replay % 10 == 0) {
        eager_work(pool, own, value_count);
      }
      if (look) {
        const expectation right{random_values(static_cast<unsigned>(replay - 99))};
        CHECK(matches(sorted, right.sorted));
        CHECK(matches(scanned, right.scanned));
        CHECK(matches(sum, {right.sum}));
      }
    }
  }
  CHECK(gpu::all_came_back(pool));
}
