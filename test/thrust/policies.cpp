#include "each_policy.hpp"

#include <thrust/copy.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/system/cpp/execution_policy.h>

#include <algorithm>
#include <thread>
#include <type_traits>

#if !defined(PAGESIFT_DEVICE_IS_CUDA) && THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_OMP
#include <thrust/system/omp/execution_policy.h>
#endif
#if !defined(PAGESIFT_DEVICE_IS_CUDA) && THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_TBB
#include <thrust/system/tbb/execution_policy.h>
#endif

namespace pagesift_test {
namespace {

/// Sorts through `policy` and says how many blocks `pool` handed out for that.
template <typename Pool, typename Policy>
std::uint64_t blocks_for_a_sort(Pool& pool, const Policy& policy) {
  std::vector<int> expected = random_ints(5000, 1 << 30);
  const place at{pagesift::device_pool::default_pool(), {}};
  auto keys = at.upload(expected);
  const auto handed_out = [&pool] {
    const pagesift::pool_stats s = pool.stats();
    return s.hits + s.misses;
  };
  const std::uint64_t before = handed_out();
  thrust::stable_sort(policy, keys.begin(), keys.end(), by_last_digits{});
  const std::uint64_t after = handed_out();
  std::stable_sort(expected.begin(), expected.end(), by_last_digits{});
  CHECK(download(keys) == expected);
  return after - before;
}

TEST_CASE("thrust::device(handle) takes its memory from the handle's pool") {
  pagesift::device_pool pool;
  auto handle = pool.handle();
  const auto constant = pool.handle();
  CHECK(blocks_for_a_sort(pool, thrust::device(pool.handle())) > 0);
  CHECK(blocks_for_a_sort(pool, thrust::device(handle)) > 0);
  CHECK(blocks_for_a_sort(pool, thrust::device(constant)) > 0);
  CHECK(pool.stats().in_use == 0);
  CHECK(pool.stats().rejected_frees == 0);
}

#if !defined(PAGESIFT_DEVICE_IS_CUDA)
TEST_CASE("the system's own par(handle) takes its memory from the handle's pool") {
#if THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_OMP
  const auto par = [](auto&& handle) {
    return thrust::omp::par(std::forward<decltype(handle)>(handle));
  };
#elif THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_TBB
  const auto par = [](auto&& handle) {
    return thrust::tbb::par(std::forward<decltype(handle)>(handle));
  };
#else
  const auto par = [](auto&& handle) {
    return thrust::cpp::par(std::forward<decltype(handle)>(handle));
  };
#endif
  pagesift::device_pool pool;
  auto handle = pool.handle();
  CHECK(blocks_for_a_sort(pool, par(pool.handle())) > 0);
  CHECK(blocks_for_a_sort(pool, par(handle)) > 0);
  CHECK(pool.stats().in_use == 0);
}
#endif

TEST_CASE("a pool of host memory serves thrust::cpp beside any device system") {
  pagesift::host_pool pool;
  auto handle = pool.handle();
  std::vector<int> values = random_ints(5000, 1 << 30);
  std::vector<int> expected = values;
  std::stable_sort(expected.begin(), expected.end(), by_last_digits{});
  thrust::stable_sort(thrust::cpp::par(handle), values.begin(), values.end(), by_last_digits{});
  CHECK(values == expected);
  values = random_ints(5000, 1 << 30);
  thrust::stable_sort(thrust::cpp::par(pool.handle()), values.begin(), values.end(),
                      by_last_digits{});
  CHECK(values == expected);
  CHECK(pool.stats().hits > 0);
  CHECK(pool.stats().in_use == 0);
}

TEST_CASE(
    "pagesift::device takes its memory from the default pool, a pool's policy from the pool") {
  pagesift::device_pool& common = pagesift::device_pool::default_pool();
  pagesift::device_pool own;
  CHECK(blocks_for_a_sort(common, pagesift::device) > 0);
  CHECK(blocks_for_a_sort(common, pagesift::device.on(pagesift::stream{})) > 0);
  CHECK(blocks_for_a_sort(common, pagesift::device_nosync) > 0);
  CHECK(blocks_for_a_sort(common, pagesift::device_nosync.on(pagesift::stream{})) > 0);
  CHECK(own.stats().held == 0);
  CHECK(blocks_for_a_sort(own, own.policy()) > 0);
  CHECK(blocks_for_a_sort(own, own.policy_nosync()) > 0);
  CHECK(blocks_for_a_sort(own, own.policy().on(pagesift::stream{})) > 0);
}

auto kept_policy(pagesift::device_pool& pool) { return pool.policy(); }
auto kept_thrust_policy(pagesift::device_pool& pool) { return thrust::device(pool.handle()); }

TEST_CASE("a policy may outlive the expression that made it, and be used again") {
  pagesift::device_pool pool;
  const auto policy = kept_policy(pool);
  const auto thrust_policy = kept_thrust_policy(pool);
  const auto copy = policy;
  for (int i = 0; i < 2; ++i) {
    CHECK(blocks_for_a_sort(pool, policy) > 0);
    CHECK(blocks_for_a_sort(pool, thrust_policy) > 0);
    CHECK(blocks_for_a_sort(pool, copy) > 0);
  }
}

// Static objects of this file are made before main; the policy must be fit for use by then.
int sum_of_a_static() {
  const place at{pagesift::device_pool::default_pool(), {}};
  const auto values = at.upload(std::vector<int>(1000, 3));
  return thrust::reduce(pagesift::device, values.begin(), values.end());
}
#if !defined(PAGESIFT_DEVICE_IS_CUDA)
const int sum_before_main = sum_of_a_static();
#else
const int sum_before_main = 3000;  // a machine without a device must get as far as main
#endif

TEST_CASE("pagesift::device works before main") {
  CHECK(sum_before_main == 3000);
  CHECK(sum_of_a_static() == 3000);
}

TEST_CASE("a shortage reaches the caller of the algorithm as it was thrown") {
  pagesift::pool_options options;
  options.limit_bytes = 8 * pagesift::mebibyte;
  pagesift::device_pool pool{options};
  const std::size_t n = 4'000'000;
  const place at{pagesift::device_pool::default_pool(), {}};
  auto values = at.upload(random_ints(n, 1 << 30));
  auto out = at.buffer<int>(n);
  const auto use_much = [&](const auto& policy) {
#if !defined(PAGESIFT_DEVICE_IS_CUDA) && THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_OMP
    // Not a sort: that asks from within a parallel region, which no exception may leave.
    thrust::copy_if(policy, values.begin(), values.end(), out.begin(), is_odd{});
#else
    thrust::sort(policy, values.begin(), values.end());
#endif
  };
  CHECK_THROWS_AS(use_much(pool.policy()), pagesift::out_of_memory);
  CHECK_THROWS_AS(use_much(pool.policy_nosync()), pagesift::out_of_memory);
  CHECK_THROWS_AS(use_much(thrust::device(pool.handle())), pagesift::out_of_memory);
  CHECK_THROWS_AS(use_much(pool.policy()), std::bad_alloc);
  CHECK(pool.stats().in_use == 0);
  CHECK(blocks_for_a_sort(pool, pool.policy()) > 0);
}

TEST_CASE("temporary storage is aligned to 256 bytes and is never null") {
  pagesift::device_pool pool;
  auto policy = thrust::device(pool.handle());
  for (const std::ptrdiff_t count : {0, 1, 255, 1000}) {
    const auto storage = thrust::get_temporary_buffer<char>(policy, count);
    const char* const p = thrust::raw_pointer_cast(storage.first);
    CHECK(p != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(p) % 256 == 0);
    CHECK(storage.second == count);
    thrust::return_temporary_buffer(policy, storage.first, count);
  }
  CHECK(pool.stats().in_use == 0);
}

TEST_CASE("temporary storage of a count that is negative or wraps is refused") {
  pagesift::device_pool pool;
  auto policy = thrust::device(pool.handle());
  const std::ptrdiff_t many = std::ptrdiff_t{1} << 61;  // times 8 bytes is 2^64
  CHECK_THROWS_AS((void)thrust::get_temporary_buffer<int>(policy, -1), pagesift::invalid_argument);
  CHECK_THROWS_AS((void)thrust::get_temporary_buffer<double>(policy, many),
                  pagesift::size_overflow);
  CHECK(pool.stats().held == 0);
}

TEST_CASE("several threads may use pagesift::device at once") {
  const std::size_t in_use = pagesift::device_pool::default_pool().stats().in_use;
  std::vector<std::thread> threads;
  std::vector<char> right(4, 0);
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&right, t] {
      const place at{pagesift::device_pool::default_pool(), {}};
      std::vector<int> expected = random_ints(3000, 1 << 30, t + 1);
      auto keys = at.upload(expected);
      for (int i = 0; i < 5; ++i) {
        keys.scatter(expected);
        thrust::stable_sort(pagesift::device, keys.begin(), keys.end(), by_last_digits{});
      }
      std::stable_sort(expected.begin(), expected.end(), by_last_digits{});
      right[t] = download(keys) == expected ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(right == std::vector<char>(4, 1));
  CHECK(pagesift::device_pool::default_pool().stats().in_use == in_use);
}

// Not with OMP, whose sort asks from within a parallel region, which no exception may leave.
#if defined(PAGESIFT_DEVICE_IS_CUDA) || THRUST_DEVICE_SYSTEM != THRUST_DEVICE_SYSTEM_OMP
TEST_CASE("sorts that grow towards the pool's limit find room while memory is idle") {
  constexpr std::size_t page = 2 * pagesift::mebibyte;
  pagesift::pool_options options;
  options.limit_bytes = 32 * page;
  pagesift::device_pool pool{options};
  const place at{pool, {}};
  for (std::size_t pages = 1; pages <= 13; pages += 3) {
    // Temporary storage is as large as the array, and on CUDA up to two pages larger.
    auto keys = at.upload(random_ints(pages * page / sizeof(int), 1 << 30));
    thrust::sort(pool.policy(), keys.begin(), keys.end());
    CHECK(thrust::is_sorted(pool.policy(), keys.begin(), keys.end()));
  }
  CHECK(pool.stats().in_use == 0);
  CHECK(pool.stats().peak_held <= options.limit_bytes);
}
#endif

}  // namespace
}  // namespace pagesift_test
