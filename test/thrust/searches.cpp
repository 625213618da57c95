#include "each_policy.hpp"

#include <thrust/binary_search.h>
#include <thrust/equal.h>
#include <thrust/find.h>
#include <thrust/logical.h>
#include <thrust/mismatch.h>

#include <algorithm>

namespace pagesift_test {
namespace {

TEST_CASE("find and find_if find the first place, or the end") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> host = random_ints(n, 1000);
      const auto device = at.upload(host);
      const auto first = device.begin();
      CHECK(thrust::find(policy, first, device.end(), 500) - first ==
            std::find(host.begin(), host.end(), 500) - host.begin());
      CHECK(thrust::find(policy, first, device.end(), -1) == device.end());
      CHECK(thrust::find_if(policy, first, device.end(), is_odd{}) - first ==
            std::find_if(host.begin(), host.end(), is_odd{}) - host.begin());
    }
  });
}

TEST_CASE("any_of, all_of and none_of agree with the standard library") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      for (const int end : {1, 1000}) {
        const std::vector<int> host = random_ints(n, end);
        const auto device = at.upload(host);
        CHECK(thrust::any_of(policy, device.begin(), device.end(), is_odd{}) ==
              std::any_of(host.begin(), host.end(), is_odd{}));
        CHECK(thrust::all_of(policy, device.begin(), device.end(), is_odd{}) ==
              std::all_of(host.begin(), host.end(), is_odd{}));
        CHECK(thrust::none_of(policy, device.begin(), device.end(), is_odd{}) ==
              std::none_of(host.begin(), host.end(), is_odd{}));
      }
    }
  });
}

TEST_CASE("equal and mismatch see the one element that differs") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> host = random_ints(n, 1000);
      const auto a = at.upload(host);
      const auto same = at.upload(host);
      CHECK(thrust::equal(policy, a.begin(), a.end(), same.begin()));
      CHECK(thrust::mismatch(policy, a.begin(), a.end(), same.begin()).first == a.end());
      if (n != 0) {
        std::vector<int> changed = host;
        changed[n / 2] += 1;
        const auto other = at.upload(changed);
        CHECK_FALSE(thrust::equal(policy, a.begin(), a.end(), other.begin()));
        CHECK(thrust::mismatch(policy, a.begin(), a.end(), other.begin()).first - a.begin() ==
              static_cast<std::ptrdiff_t>(n / 2));
      }
    }
  });
}

TEST_CASE("bounds of many values in a sorted array") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      std::vector<int> host = random_ints(n, 1000);
      std::sort(host.begin(), host.end());
      const std::vector<int> wanted = random_ints(100, 1200, 2);
      std::vector<int> lower;
      std::vector<int> upper;
      std::vector<int> found;
      for (const int value : wanted) {
        const auto range = std::equal_range(host.begin(), host.end(), value);
        lower.push_back(static_cast<int>(range.first - host.begin()));
        upper.push_back(static_cast<int>(range.second - host.begin()));
        found.push_back(range.first == range.second ? 0 : 1);
      }
      const auto device = at.upload(host);
      const auto values = at.upload(wanted);
      auto out = at.buffer<int>(wanted.size());
      thrust::lower_bound(policy, device.begin(), device.end(), values.begin(), values.end(),
                          out.begin());
      CHECK(download(out) == lower);
      thrust::upper_bound(policy, device.begin(), device.end(), values.begin(), values.end(),
                          out.begin());
      CHECK(download(out) == upper);
      thrust::binary_search(policy, device.begin(), device.end(), values.begin(), values.end(),
                            out.begin());
      CHECK(download(out) == found);
    }
  });
}

TEST_CASE("bounds of one value in a sorted array") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      std::vector<int> host = random_ints(n, 1000);
      std::sort(host.begin(), host.end());
      const auto device = at.upload(host);
      for (const int value : {0, 500, 2000}) {
        CHECK(thrust::lower_bound(policy, device.begin(), device.end(), value) - device.begin() ==
              std::lower_bound(host.begin(), host.end(), value) - host.begin());
        CHECK(thrust::binary_search(policy, device.begin(), device.end(), value) ==
              std::binary_search(host.begin(), host.end(), value));
      }
    }
  });
}

}  // namespace
}  // namespace pagesift_test
