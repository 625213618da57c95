#include "each_policy.hpp"

#include <thrust/merge.h>
#include <thrust/set_operations.h>

#include <algorithm>
#include <iterator>

namespace pagesift_test {
namespace {

std::vector<int> sorted_ints(std::size_t count, int end, unsigned seed) {
  std::vector<int> values = random_ints(count, end, seed);
  std::sort(values.begin(), values.end());
  return values;
}

TEST_CASE("merge merges two sorted arrays") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> a = sorted_ints(n, 1000, 1);
      const std::vector<int> b = sorted_ints(n / 2, 1000, 2);
      std::vector<int> expected;
      std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(expected));
      const auto in_a = at.upload(a);
      const auto in_b = at.upload(b);
      auto out = at.buffer<int>(a.size() + b.size());
      thrust::merge(policy, in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), out.begin());
      CHECK(download(out) == expected);
    }
  });
}

TEST_CASE("merge_by_key takes the values along") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      // A value is twice its key in one array and twice its key plus 1 in the other.
      const std::vector<int> a = sorted_ints(n, 1000, 1);
      const std::vector<int> b = sorted_ints(n / 2, 1000, 2);
      std::vector<int> a_values;
      std::vector<int> b_values;
      for (const int key : a) {
        a_values.push_back(2 * key);
      }
      for (const int key : b) {
        b_values.push_back(2 * key + 1);
      }
      std::vector<int> expected;
      std::merge(a_values.begin(), a_values.end(), b_values.begin(), b_values.end(),
                 std::back_inserter(expected));

      const auto in_a = at.upload(a);
      const auto in_b = at.upload(b);
      const auto in_a_values = at.upload(a_values);
      const auto in_b_values = at.upload(b_values);
      auto out = at.buffer<int>(a.size() + b.size());
      auto out_values = at.buffer<int>(a.size() + b.size());
      thrust::merge_by_key(policy, in_a.begin(), in_a.end(), in_b.begin(), in_b.end(),
                           in_a_values.begin(), in_b_values.begin(), out.begin(),
                           out_values.begin());
      CHECK(download(out_values) == expected);
    }
  });
}

TEST_CASE("set operations agree with those of the standard library") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> a = sorted_ints(n, 1000, 1);
      const std::vector<int> b = sorted_ints(n / 2, 1000, 2);
      const auto in_a = at.upload(a);
      const auto in_b = at.upload(b);
      auto out = at.buffer<int>(a.size() + b.size());

      std::vector<int> expected;
      std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(expected));
      auto end = thrust::set_union(policy, in_a.begin(), in_a.end(), in_b.begin(), in_b.end(),
                                   out.begin());
      CHECK(download(out, end - out.begin()) == expected);

      expected.clear();
      std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(expected));
      end = thrust::set_intersection(policy, in_a.begin(), in_a.end(), in_b.begin(), in_b.end(),
                                     out.begin());
      CHECK(download(out, end - out.begin()) == expected);

      expected.clear();
      std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(expected));
      end = thrust::set_difference(policy, in_a.begin(), in_a.end(), in_b.begin(), in_b.end(),
                                   out.begin());
      CHECK(download(out, end - out.begin()) == expected);

      expected.clear();
      std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(),
                                    std::back_inserter(expected));
      end = thrust::set_symmetric_difference(policy, in_a.begin(), in_a.end(), in_b.begin(),
                                             in_b.end(), out.begin());
      CHECK(download(out, end - out.begin()) == expected);
    }
  });
}

TEST_CASE("set_difference_by_key takes the values along") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> a = sorted_ints(n, 1000, 1);
      const std::vector<int> b = sorted_ints(n / 2, 1000, 2);
      std::vector<int> expected;
      std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(expected));

      const auto in_a = at.upload(a);
      const auto in_b = at.upload(b);
      auto out = at.buffer<int>(a.size());
      auto out_values = at.buffer<int>(a.size());
      const auto ends = thrust::set_difference_by_key(
          policy, in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), in_a.begin(), in_b.begin(),
          out.begin(), out_values.begin());
      CHECK(download(out, ends.first - out.begin()) == expected);
      CHECK(download(out_values, ends.second - out_values.begin()) == expected);
    }
  });
}

}  // namespace
}  // namespace pagesift_test
