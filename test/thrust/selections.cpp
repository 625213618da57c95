#include "each_policy.hpp"

#include <thrust/copy.h>
#include <thrust/partition.h>
#include <thrust/remove.h>
#include <thrust/unique.h>

#include <algorithm>
#include <iterator>

namespace pagesift_test {
namespace {

TEST_CASE("unique keeps the first of each run of equal elements") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      std::vector<int> expected = random_ints(n, 3);
      auto device = at.upload(expected);
      expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
      const auto end = thrust::unique(policy, device.begin(), device.end());
      CHECK(download(device, end - device.begin()) == expected);
    }
  });
}

TEST_CASE("unique_copy leaves the original alone") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> host = random_ints(n, 3);
      std::vector<int> expected;
      std::unique_copy(host.begin(), host.end(), std::back_inserter(expected));
      const auto in = at.upload(host);
      auto out = at.buffer<int>(n);
      const auto end = thrust::unique_copy(policy, in.begin(), in.end(), out.begin());
      CHECK(download(out, end - out.begin()) == expected);
      CHECK(download(in) == host);
    }
  });
}

TEST_CASE("unique_by_key keeps the first value of each run of equal keys") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> host_keys = random_ints(n, 3);
      const std::vector<int> host_values = random_ints(n, 1000, 2);
      std::vector<int> expected;
      for (std::size_t i = 0; i < n; ++i) {
        if (i == 0 || host_keys[i] != host_keys[i - 1]) {
          expected.push_back(host_values[i]);
        }
      }
      auto keys = at.upload(host_keys);
      auto values = at.upload(host_values);
      const auto ends = thrust::unique_by_key(policy, keys.begin(), keys.end(), values.begin());
      CHECK(ends.first - keys.begin() == ends.second - values.begin());
      CHECK(download(values, ends.second - values.begin()) == expected);
    }
  });
}

TEST_CASE("copy_if copies what fits, in order") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> host = random_ints(n, 1000);
      std::vector<int> expected;
      std::copy_if(host.begin(), host.end(), std::back_inserter(expected), is_odd{});
      const auto in = at.upload(host);
      auto out = at.buffer<int>(n);
      const auto end = thrust::copy_if(policy, in.begin(), in.end(), out.begin(), is_odd{});
      CHECK(download(out, end - out.begin()) == expected);
    }
  });
}

TEST_CASE("remove_if removes what fits, in order") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      std::vector<int> expected = random_ints(n, 1000);
      auto device = at.upload(expected);
      expected.erase(std::remove_if(expected.begin(), expected.end(), is_odd{}), expected.end());
      const auto end = thrust::remove_if(policy, device.begin(), device.end(), is_odd{});
      CHECK(download(device, end - device.begin()) == expected);
    }
  });
}

TEST_CASE("stable_partition puts what fits first and keeps the order") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      std::vector<int> expected = random_ints(n, 1000);
      auto device = at.upload(expected);
      const auto middle = std::stable_partition(expected.begin(), expected.end(), is_odd{});
      const auto end = thrust::stable_partition(policy, device.begin(), device.end(), is_odd{});
      CHECK(end - device.begin() == middle - expected.begin());
      CHECK(download(device) == expected);
    }
  });
}

TEST_CASE("partition puts what fits first") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      std::vector<int> expected = random_ints(n, 1000);
      auto device = at.upload(expected);
      const auto fitting = std::count_if(expected.begin(), expected.end(), is_odd{});
      const auto end = thrust::partition(policy, device.begin(), device.end(), is_odd{});
      CHECK(end - device.begin() == fitting);
      std::vector<int> result = download(device);
      CHECK(std::is_partitioned(result.begin(), result.end(), is_odd{}));
      std::sort(result.begin(), result.end());
      std::sort(expected.begin(), expected.end());
      CHECK(result == expected);
    }
  });
}

TEST_CASE("stable_partition_copy parts into two arrays") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> host = random_ints(n, 1000);
      std::vector<int> odd;
      std::vector<int> even;
      std::partition_copy(host.begin(), host.end(), std::back_inserter(odd),
                          std::back_inserter(even), is_odd{});
      const auto in = at.upload(host);
      auto out_odd = at.buffer<int>(n);
      auto out_even = at.buffer<int>(n);
      const auto ends = thrust::stable_partition_copy(policy, in.begin(), in.end(), out_odd.begin(),
                                                      out_even.begin(), is_odd{});
      CHECK(download(out_odd, ends.first - out_odd.begin()) == odd);
      CHECK(download(out_even, ends.second - out_even.begin()) == even);
    }
  });
}

}  // namespace
}  // namespace pagesift_test
