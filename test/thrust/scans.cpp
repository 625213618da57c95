#include "each_policy.hpp"

#include <thrust/adjacent_difference.h>
#include <thrust/functional.h>
#include <thrust/scan.h>
#include <thrust/transform_scan.h>

#include <algorithm>
#include <numeric>

namespace pagesift_test {
namespace {

/// Restarts `scan(first, last)` at each run of equal keys.
template <typename Scan>
void each_run(const std::vector<int>& keys, Scan scan) {
  for (std::size_t first = 0; first < keys.size();) {
    std::size_t last = first;
    while (last < keys.size() && keys[last] == keys[first]) {
      ++last;
    }
    scan(static_cast<std::ptrdiff_t>(first), static_cast<std::ptrdiff_t>(last));
    first = last;
  }
}

TEST_CASE("inclusive_scan sums each prefix, into another array and in place") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> host = random_ints(n, 100);
      std::vector<int> expected(n);
      std::partial_sum(host.begin(), host.end(), expected.begin());
      auto in = at.upload(host);
      auto out = at.buffer<int>(n);
      thrust::inclusive_scan(policy, in.begin(), in.end(), out.begin());
      CHECK(download(out) == expected);
      thrust::inclusive_scan(policy, in.begin(), in.end(), in.begin());
      CHECK(download(in) == expected);
    }
  });
}

TEST_CASE("exclusive_scan sums what stands before each element") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> host = random_ints(n, 100);
      std::vector<int> expected(n);
      std::exclusive_scan(host.begin(), host.end(), expected.begin(), 11);
      const auto in = at.upload(host);
      auto out = at.buffer<int>(n);
      thrust::exclusive_scan(policy, in.begin(), in.end(), out.begin(), 11);
      CHECK(download(out) == expected);
    }
  });
}

TEST_CASE("transform_inclusive_scan sums prefixes of what a function gives") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> host = random_ints(n, 10);
      std::vector<int> expected(n);
      std::transform_inclusive_scan(host.begin(), host.end(), expected.begin(), std::plus<int>{},
                                    square{});
      const auto in = at.upload(host);
      auto out = at.buffer<int>(n);
      thrust::transform_inclusive_scan(policy, in.begin(), in.end(), out.begin(), square{},
                                       thrust::plus<int>{});
      CHECK(download(out) == expected);
    }
  });
}

TEST_CASE("scans by key start anew at each key") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      std::vector<int> keys = random_ints(n, 50);
      std::sort(keys.begin(), keys.end());
      const std::vector<int> host = random_ints(n, 100, 2);
      std::vector<int> inclusive(n);
      std::vector<int> exclusive(n);
      each_run(keys, [&](std::ptrdiff_t first, std::ptrdiff_t last) {
        std::partial_sum(host.begin() + first, host.begin() + last, inclusive.begin() + first);
        std::exclusive_scan(host.begin() + first, host.begin() + last, exclusive.begin() + first,
                            0);
      });
      const auto device_keys = at.upload(keys);
      const auto in = at.upload(host);
      auto out = at.buffer<int>(n);
      thrust::inclusive_scan_by_key(policy, device_keys.begin(), device_keys.end(), in.begin(),
                                    out.begin());
      CHECK(download(out) == inclusive);
      thrust::exclusive_scan_by_key(policy, device_keys.begin(), device_keys.end(), in.begin(),
                                    out.begin());
      CHECK(download(out) == exclusive);
    }
  });
}

TEST_CASE("adjacent_difference subtracts neighbours, into another array and in place") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> host = random_ints(n, 1000);
      std::vector<int> expected(n);
      std::adjacent_difference(host.begin(), host.end(), expected.begin());
      auto in = at.upload(host);
      auto out = at.buffer<int>(n);
      thrust::adjacent_difference(policy, in.begin(), in.end(), out.begin());
      CHECK(download(out) == expected);
      thrust::adjacent_difference(policy, in.begin(), in.end(), in.begin());
      CHECK(download(in) == expected);
    }
  });
}

}  // namespace
}  // namespace pagesift_test
