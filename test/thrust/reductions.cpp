#include "each_policy.hpp"

#include <thrust/count.h>
#include <thrust/extrema.h>
#include <thrust/functional.h>
#include <thrust/inner_product.h>
#include <thrust/reduce.h>
#include <thrust/transform_reduce.h>

#include <algorithm>
#include <numeric>

namespace pagesift_test {
namespace {

struct maximum {
  PAGESIFT_TEST_FUNCTOR int operator()(int a, int b) const { return a < b ? b : a; }
};

TEST_CASE("reduce adds up") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> host = random_ints(n, 1000);
      const auto device = at.upload(host);
      CHECK(thrust::reduce(policy, device.begin(), device.end()) ==
            std::accumulate(host.begin(), host.end(), 0));
    }
  });
}

TEST_CASE("reduce combines by an operation of the user's own") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> host = random_ints(n, 1 << 30);
      const auto device = at.upload(host);
      CHECK(thrust::reduce(policy, device.begin(), device.end(), -1, maximum{}) ==
            std::accumulate(host.begin(), host.end(), -1, maximum{}));
    }
  });
}

TEST_CASE("transform_reduce adds up what a function gives") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> host = random_ints(n, 100);
      const auto device = at.upload(host);
      int expected = 7;
      for (const int x : host) {
        expected += x * x;
      }
      CHECK(thrust::transform_reduce(policy, device.begin(), device.end(), square{}, 7,
                                     thrust::plus<int>{}) == expected);
    }
  });
}

TEST_CASE("count and count_if count") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> host = random_ints(n, 10);
      const auto device = at.upload(host);
      CHECK(thrust::count(policy, device.begin(), device.end(), 3) ==
            std::count(host.begin(), host.end(), 3));
      CHECK(thrust::count_if(policy, device.begin(), device.end(), is_odd{}) ==
            std::count_if(host.begin(), host.end(), is_odd{}));
    }
  });
}

TEST_CASE("inner_product multiplies pairs and adds up") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> a = random_ints(n, 100, 1);
      const std::vector<int> b = random_ints(n, 100, 2);
      const auto device_a = at.upload(a);
      const auto device_b = at.upload(b);
      CHECK(thrust::inner_product(policy, device_a.begin(), device_a.end(), device_b.begin(), 5) ==
            std::inner_product(a.begin(), a.end(), b.begin(), 5));
    }
  });
}

TEST_CASE("min_element, max_element and minmax_element find the first of the extremes") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> host = random_ints(n, 1 << 30);
      const auto device = at.upload(host);
      const auto first = device.begin();
      const auto smallest = std::min_element(host.begin(), host.end()) - host.begin();
      const auto largest = std::max_element(host.begin(), host.end()) - host.begin();
      CHECK(thrust::min_element(policy, first, device.end()) - first == smallest);
      CHECK(thrust::max_element(policy, first, device.end()) - first == largest);
      const auto both = thrust::minmax_element(policy, first, device.end());
      CHECK(both.first - first == smallest);
      CHECK(both.second - first == largest);
    }
  });
}

TEST_CASE("reduce_by_key adds up the values of each run of equal keys") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      std::vector<int> keys = random_ints(n, 100);
      std::sort(keys.begin(), keys.end());
      const std::vector<int> values = random_ints(n, 1000, 2);
      std::vector<int> expected_keys;
      std::vector<int> expected_sums;
      for (std::size_t i = 0; i < n; ++i) {
        if (expected_keys.empty() || expected_keys.back() != keys[i]) {
          expected_keys.push_back(keys[i]);
          expected_sums.push_back(0);
        }
        expected_sums.back() += values[i];
      }

      const auto device_keys = at.upload(keys);
      const auto device_values = at.upload(values);
      auto out_keys = at.buffer<int>(n);
      auto out_sums = at.buffer<int>(n);
      const auto ends =
          thrust::reduce_by_key(policy, device_keys.begin(), device_keys.end(),
                                device_values.begin(), out_keys.begin(), out_sums.begin());
      CHECK(download(out_keys, ends.first - out_keys.begin()) == expected_keys);
      CHECK(download(out_sums, ends.second - out_sums.begin()) == expected_sums);
    }
  });
}

}  // namespace
}  // namespace pagesift_test
