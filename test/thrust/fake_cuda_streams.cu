// Which stream the pool is told of, seen on the host's side of Thrust's CUDA system.
#include "each_policy.hpp"
#include "fake_cuda.hpp"
#include "recording_pool.hpp"

#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/system/cpp/execution_policy.h>

#include <algorithm>

namespace pagesift_test {
namespace {

/// Runs algorithms under `policy` and checks that `pool` was told of `stream` each time.
template <typename Policy>
void expect_stream(recording_pool& pool, const Policy& policy, cudaStream_t stream) {
  pool = recording_pool{};
  static std::vector<int> values(5000, 1);
  const thrust::device_ptr<int> first{values.data()};
  thrust::sort(policy, first, first + 5000);
  (void)thrust::reduce(policy, first, first + 5000);
  CHECK(pool.taken == std::vector<cudaStream_t>(2, stream));
  CHECK(pool.returned == std::vector<cudaStream_t>(2, stream));
  CHECK(pool.without_stream == 0);
}

TEST_CASE("a policy made from a handle tells the pool its stream") {
  const side_stream side;
  const cudaStream_t s = side.get();
  recording_pool pool;
  auto handle = pool.handle();
  const auto constant = pool.handle();

  SUBCASE("par, a named handle") { expect_stream(pool, thrust::cuda::par(handle).on(s), s); }
  SUBCASE("par, a constant handle") { expect_stream(pool, thrust::cuda::par(constant).on(s), s); }
  SUBCASE("par, a temporary") { expect_stream(pool, thrust::cuda::par(pool.handle()).on(s), s); }
  SUBCASE("par_nosync, a named handle") {
    expect_stream(pool, thrust::cuda::par_nosync(handle).on(s), s);
  }
  SUBCASE("par_nosync, a temporary") {
    expect_stream(pool, thrust::cuda::par_nosync(pool.handle()).on(s), s);
  }
  SUBCASE("thrust::device") { expect_stream(pool, thrust::device(handle).on(s), s); }
}

TEST_CASE("a policy without a stream tells the pool the default stream") {
  recording_pool pool;
  auto handle = pool.handle();
  SUBCASE("device, a named handle") {
    expect_stream(pool, thrust::device(handle), cudaStreamLegacy);
  }
  SUBCASE("device, a temporary") {
    expect_stream(pool, thrust::device(pool.handle()), cudaStreamLegacy);
  }
  SUBCASE("par_nosync") { expect_stream(pool, thrust::cuda::par_nosync(handle), cudaStreamLegacy); }
  SUBCASE("tag, a named handle") {
    expect_stream(pool, thrust::cuda::tag{}(handle), cudaStreamLegacy);
  }
  SUBCASE("tag, a temporary") {
    expect_stream(pool, thrust::cuda::tag{}(pool.handle()), cudaStreamLegacy);
  }
}

TEST_CASE("thrust::cpp::par(handle) beside CUDA keeps to allocation without a stream") {
  recording_pool pool;
  auto handle = pool.handle();
  std::vector<int> values = random_ints(100, 1000);
  thrust::stable_sort(thrust::cpp::par(handle), values.begin(), values.end(), by_last_digits{});
  thrust::stable_sort(thrust::cpp::par(pool.handle()), values.begin(), values.end());
  CHECK(std::is_sorted(values.begin(), values.end()));
  CHECK(pool.without_stream > 1);
  CHECK(pool.taken.empty());
  CHECK(pool.returned.empty());
}

TEST_CASE("pagesift's own policies run on the stream they are given, and tell it to the pool") {
  const side_stream side;
  const cudaStream_t s = side.get();
  pagesift::device_pool pool;
  const auto streams_of_a_sort = [](const auto& policy) {
    static std::vector<int> values(5000, 1);
    const thrust::device_ptr<int> first{values.data()};
    fake_cuda::clear_log();
    thrust::sort(policy, first, first + 5000);
    std::vector<cudaStream_t> asked;
    for (const fake_cuda::call& call : fake_cuda::log()) {
      if (call.name == "cuStreamIsCapturing" || call.name == "cudaLaunchKernel") {
        asked.push_back(call.stream);
      }
    }
    return asked;
  };
  const auto all_on = [](const std::vector<cudaStream_t>& streams, cudaStream_t stream) {
    return !streams.empty() && std::all_of(streams.begin(), streams.end(),
                                           [=](cudaStream_t each) { return each == stream; });
  };

  CHECK(all_on(streams_of_a_sort(pagesift::device.on(s)), s));
  CHECK(fake_cuda::count("cuStreamIsCapturing") >= 1);  // at the request; its free asks nothing
  CHECK_FALSE(fake_cuda::pending(s));
  CHECK(all_on(streams_of_a_sort(pagesift::device_nosync.on(s)), s));
  CHECK(fake_cuda::pending(s));
  CHECK(all_on(streams_of_a_sort(pool.policy(s)), s));
  CHECK_FALSE(fake_cuda::pending(s));
  CHECK(all_on(streams_of_a_sort(pool.policy_nosync(s)), s));
  CHECK(fake_cuda::pending(s));
  CHECK(all_on(streams_of_a_sort(pagesift::device), cudaStreamLegacy));
  CHECK(all_on(streams_of_a_sort(pagesift::device_nosync), cudaStreamLegacy));
}

TEST_CASE("null and cudaStreamLegacy are one stream to the pool") {
  pagesift::device_pool pool;
  static std::vector<int> values(5000, 1);
  const thrust::device_ptr<int> first{values.data()};
  thrust::sort(thrust::device(pool.handle()), first, first + 5000);  // on cudaStreamLegacy
  const pagesift::pool_stats once = pool.stats();
  thrust::sort(pool.policy(nullptr), first, first + 5000);
  CHECK(pool.stats().hits == once.hits + 1);
  CHECK(pool.stats().backend_allocations == once.backend_allocations);
  CHECK(pool.stats().streams == once.streams);
}

}  // namespace
}  // namespace pagesift_test
