// Pools behind thrust::mr, in policies and in vectors.
#include "each_policy.hpp"

#include <pagesift/adapters/thrust_resource.hpp>

#include <thrust/device_vector.h>
#include <thrust/mr/allocator.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>

#include <functional>
#include <utility>
#include <vector>

namespace pagesift_test {
namespace {

using pagesift::thrust_resource;
using resource_allocator = thrust::mr::allocator<int, thrust_resource>;
using resource_vector = thrust::device_vector<int, resource_allocator>;

std::vector<int> read(const resource_vector& v) {
  std::vector<int> host(v.size());
  thrust::copy(v.begin(), v.end(), host.begin());
  return host;
}

/// Two pools and a resource of each, as a container or a policy takes them.
struct two_resources {
  ~two_resources() {
    CHECK(first_pool.stats().in_use == 0);
    CHECK(second_pool.stats().in_use == 0);
    CHECK(first_pool.stats().rejected_frees == 0);
    CHECK(second_pool.stats().rejected_frees == 0);
  }

  pagesift::device_pool first_pool;
  pagesift::device_pool second_pool;
  thrust_resource first{first_pool, pagesift::stream{}};
  thrust_resource second{second_pool, pagesift::stream{}};
};

TEST_CASE("a policy of a resource takes its temporary storage from the pool") {
  pagesift::device_pool pool;
  thrust_resource resource{pool};
  pagesift::device_vector<int> values(10'000);
  thrust::sequence(values.begin(), values.end());
  thrust::stable_sort(thrust::device(&resource), values.begin(), values.end(),
                      thrust::greater<int>{});
  CHECK(pool.stats().peak_in_use != 0);
  CHECK(pool.stats().in_use == 0);
  CHECK(values[0] == 9'999);
  CHECK(values[9'999] == 0);
}

TEST_CASE("a vector of a resource lives in its pool, while it grows and shrinks too") {
  two_resources t;
  resource_vector v(1000, 7, resource_allocator{&t.first});
  CHECK(t.first_pool.stats().in_use >= 4000);
  v.resize(100'000, 8);
  CHECK(t.first_pool.stats().in_use >= 400'000);
  v.resize(10);
  v.shrink_to_fit();
  CHECK(t.first_pool.stats().in_use <= 1024);
  CHECK(read(v) == std::vector<int>(10, 7));
}

TEST_CASE("vectors of two resources are moved and swapped with their pools") {
  two_resources t;
  resource_vector a(1000, 1, resource_allocator{&t.first});
  resource_vector b(2000, 2, resource_allocator{&t.second});
  a.swap(b);
  CHECK(read(a) == std::vector<int>(2000, 2));
  CHECK(read(b) == std::vector<int>(1000, 1));
  a = std::move(b);
  CHECK(read(a) == std::vector<int>(1000, 1));
  CHECK(t.second_pool.stats().in_use == 0);
}

TEST_CASE("what a resource in a stream's order got back serves again at once") {
  pagesift::device_pool pool;
  thrust_resource resource{pool, pagesift::stream{}};
  const auto p = resource.allocate(1000);
  resource.deallocate(p, 1000);
  CHECK(resource.allocate(1000) == p);
  resource.deallocate(p, 1000);
  CHECK(pool.stats().fences == 0);
}

TEST_CASE("a resource passes on what the pool throws") {
  pagesift::device_pool pool;
  thrust_resource resource{pool};
  CHECK_THROWS_AS((void)resource.allocate(100, 3), pagesift::invalid_alignment);
  CHECK_THROWS_AS((void)resource.allocate(~std::size_t{0}), pagesift::size_overflow);
  CHECK(pool.stats().in_use == 0);
}

}  // namespace
}  // namespace pagesift_test
