#include "each_policy.hpp"

#include <thrust/functional.h>
#include <thrust/iterator/reverse_iterator.h>
#include <thrust/sort.h>

#include <algorithm>
#include <numeric>

namespace pagesift_test {
namespace {

TEST_CASE("sort puts numbers in order") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      std::vector<int> expected = random_ints(n, 1 << 30);
      auto keys = at.upload(expected);
      thrust::sort(policy, keys.begin(), keys.end());
      std::sort(expected.begin(), expected.end());
      CHECK(download(keys) == expected);
    }
  });
}

TEST_CASE("sort puts numbers in descending order") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      std::vector<int> expected = random_ints(n, 1 << 30);
      auto keys = at.upload(expected);
      thrust::sort(policy, keys.begin(), keys.end(), thrust::greater<int>{});
      std::sort(expected.begin(), expected.end(), std::greater<int>{});
      CHECK(download(keys) == expected);
    }
  });
}

TEST_CASE("stable_sort keeps equal elements in place under an order of the user's own") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      std::vector<int> expected = random_ints(n, 1 << 30);
      auto keys = at.upload(expected);
      thrust::stable_sort(policy, keys.begin(), keys.end(), by_last_digits{});
      std::stable_sort(expected.begin(), expected.end(), by_last_digits{});
      CHECK(download(keys) == expected);
    }
  });
}

TEST_CASE("sort works backwards through reverse iterators") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      std::vector<int> expected = random_ints(n, 1 << 30);
      auto keys = at.upload(expected);
      thrust::sort(policy, thrust::make_reverse_iterator(keys.end()),
                   thrust::make_reverse_iterator(keys.begin()));
      std::sort(expected.rbegin(), expected.rend());
      CHECK(download(keys) == expected);
    }
  });
}

template <typename Compare>
std::vector<int> stable_order(const std::vector<int>& keys, Compare less) {
  std::vector<int> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return less(keys[static_cast<std::size_t>(a)], keys[static_cast<std::size_t>(b)]);
  });
  return order;
}

TEST_CASE("stable_sort_by_key moves values with their keys") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> original = random_ints(n, 500);
      std::vector<int> positions(n);
      std::iota(positions.begin(), positions.end(), 0);
      auto keys = at.upload(original);
      auto values = at.upload(positions);
      thrust::stable_sort_by_key(policy, keys.begin(), keys.end(), values.begin());
      CHECK(download(values) == stable_order(original, std::less<int>{}));
    }
  });
}

TEST_CASE("stable_sort_by_key moves values with their keys under an order of the user's own") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> original = random_ints(n, 1 << 30);
      std::vector<int> positions(n);
      std::iota(positions.begin(), positions.end(), 0);
      auto keys = at.upload(original);
      auto values = at.upload(positions);
      thrust::stable_sort_by_key(policy, keys.begin(), keys.end(), values.begin(),
                                 by_last_digits{});
      CHECK(download(values) == stable_order(original, by_last_digits{}));
    }
  });
}

}  // namespace
}  // namespace pagesift_test
