#include "each_policy.hpp"

#include <thrust/iterator/iterator_traits.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>

#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace pagesift_test {
namespace {

using vector = pagesift::device_vector<int>;
using allocator = pagesift::allocator<int>;

struct alignas(512) wide {
  int value;
};

// With a raw pointer a vector would count as host memory, and be filled by the CPU.
static_assert(!std::is_pointer_v<allocator::pointer>);
static_assert(std::is_same_v<thrust::iterator_system<vector::iterator>::type,
                             thrust::iterator_system<thrust::device_ptr<int>>::type>);
static_assert(noexcept(std::declval<allocator&>().deallocate(std::declval<allocator::pointer&>(),
                                                             0)));
static_assert(std::is_nothrow_default_constructible_v<allocator>);
static_assert(std::is_nothrow_copy_constructible_v<allocator>);
static_assert(std::is_same_v<allocator::rebind<double>::other, pagesift::allocator<double>>);

std::vector<int> contents(const vector& v) {
  std::vector<int> host(v.size());
  thrust::copy(v.begin(), v.end(), host.begin());
  return host;
}

TEST_CASE("a device_vector lives in the default pool, or in the pool it is given") {
  pagesift::device_pool& common = pagesift::device_pool::default_pool();
  pagesift::device_pool own;
  const std::size_t before = common.stats().in_use;
  {
    const vector in_common(1000, 7);
    CHECK(common.stats().in_use > before);
    CHECK(own.stats().held == 0);
    const std::size_t with_one = common.stats().in_use;
    const vector in_own(1000, 8, allocator{own});
    CHECK(common.stats().in_use == with_one);
    CHECK(own.stats().in_use > 0);
    CHECK(contents(in_common) == std::vector<int>(1000, 7));
    CHECK(contents(in_own) == std::vector<int>(1000, 8));
  }
  CHECK(common.stats().in_use == before);
  CHECK(own.stats().in_use == 0);
}

TEST_CASE("a device_vector grows, shrinks, and works in algorithms with and without a policy") {
  pagesift::device_pool pool;
  {
    vector v{allocator{pool}};
    for (int i = 0; i < 100; ++i) {
      v.push_back(99 - i);
    }
    thrust::sort(pool.policy(), v.begin(), v.end());
    v.resize(50);
    v.shrink_to_fit();
    CHECK(thrust::reduce(v.begin(), v.end()) == 49 * 50 / 2);
    v.insert(v.begin(), 3, 1);
    CHECK(v.size() == 53);
    CHECK(thrust::reduce(v.begin(), v.end()) == 49 * 50 / 2 + 3);
  }
  CHECK(pool.stats().in_use == 0);
  CHECK(pool.stats().rejected_frees == 0);
}

TEST_CASE("a second vector of the same size takes nothing from the device") {
  pagesift::device_pool pool;
  { const vector first(10'000, 1, allocator{pool}); }
  const std::uint64_t taken = pool.stats().backend_allocations;
  { const vector second(10'000, 2, allocator{pool}); }
  CHECK(pool.stats().backend_allocations == taken);
}

TEST_CASE("a move assignment across pools frees each block into its own pool") {
  pagesift::device_pool a;
  pagesift::device_pool b;
  {
    vector x(1000, 1, allocator{a});
    vector y(2000, 2, allocator{b});
    x = std::move(y);
    CHECK(a.stats().in_use == 0);
    CHECK(contents(x) == std::vector<int>(2000, 2));
    x.resize(3000);
    CHECK(a.stats().in_use == 0);
  }
  CHECK(b.stats().in_use == 0);
  CHECK(a.stats().rejected_frees == 0);
  CHECK(b.stats().rejected_frees == 0);
}

TEST_CASE("a swap across pools frees each block into its own pool") {
  pagesift::device_pool a;
  pagesift::device_pool b;
  {
    vector x(1000, 1, allocator{a});
    {
      vector y(2000, 2, allocator{b});
      x.swap(y);
      swap(x, y);
      x.swap(y);
    }
    CHECK(a.stats().in_use == 0);
    CHECK(contents(x) == std::vector<int>(2000, 2));
  }
  CHECK(b.stats().in_use == 0);
  CHECK(a.stats().rejected_frees == 0);
  CHECK(b.stats().rejected_frees == 0);
}

TEST_CASE("a copy assignment across pools frees each block into its own pool") {
  pagesift::device_pool a;
  pagesift::device_pool b;
  {
    vector x(1000, 1, allocator{a});
    const vector y(2000, 2, allocator{b});
    x = y;
    CHECK(contents(x) == std::vector<int>(2000, 2));
    CHECK(a.stats().in_use == 0);
    vector z{y};
    z.resize(2001, 2);
    CHECK(contents(z) == std::vector<int>(2001, 2));
  }
  CHECK(b.stats().in_use == 0);
  CHECK(a.stats().rejected_frees == 0);
  CHECK(b.stats().rejected_frees == 0);
}

TEST_CASE("a move construction with another pool's allocator copies the elements over") {
  pagesift::device_pool a;
  pagesift::device_pool b;
  {
    vector x(1000, 1, allocator{a});
    const vector y(std::move(x), allocator{b});
    CHECK(contents(y) == std::vector<int>(1000, 1));
    CHECK(b.stats().in_use > 0);
  }
  CHECK(a.stats().in_use == 0);
  CHECK(b.stats().in_use == 0);
  CHECK(a.stats().rejected_frees == 0);
  CHECK(b.stats().rejected_frees == 0);
}

TEST_CASE("allocators are equal when they share the pool and the stream") {
  pagesift::device_pool a;
  pagesift::device_pool b;
  CHECK(allocator{} == allocator{});
  CHECK(allocator{a} == allocator{a});
  CHECK(allocator{a} == allocator{a.handle()});
  CHECK(allocator{a} != allocator{b});
  CHECK_FALSE(allocator{a} == allocator{b});
  CHECK(allocator{pagesift::allocator<double>{a}} == allocator{a});
  CHECK(allocator{pagesift::allocator<double>{a}} != allocator{b});
}

TEST_CASE("a count of elements whose bytes wrap is refused and changes nothing") {
  pagesift::device_pool pool;
  pagesift::allocator<double> doubles{pool};
  pagesift::allocator<char> bytes{pool};
  constexpr std::size_t largest = std::numeric_limits<std::size_t>::max();
  CHECK_THROWS_AS((void)doubles.allocate(largest / 8 + 1), pagesift::size_overflow);
  CHECK_THROWS_AS((void)doubles.allocate(static_cast<std::size_t>(-1)), pagesift::size_overflow);
  CHECK_THROWS_AS((void)bytes.allocate(static_cast<std::size_t>(-1)), pagesift::size_overflow);
  CHECK_THROWS_AS((void)bytes.allocate(largest / 2 + 1), pagesift::size_overflow);
  CHECK_THROWS_WITH((void)doubles.allocate(largest / 8 + 1),
                    "pagesift: a request of 2305843009213693952 elements of 8 bytes does not fit "
                    "the address space");
  CHECK(pool.stats().held == 0);
  CHECK(pool.stats().hits + pool.stats().misses == 0);
}

TEST_CASE("a shortage in a vector leaves the vector as it was") {
  pagesift::pool_options options;
  options.limit_bytes = 8 * pagesift::mebibyte;
  pagesift::device_pool pool{options};
  vector v(1000, 4, allocator{pool});
  CHECK_THROWS_AS(v.resize(10'000'000), pagesift::out_of_memory);
  CHECK(contents(v) == std::vector<int>(1000, 4));
}

TEST_CASE("blocks are aligned to 256 bytes, and to more where the element asks for more") {
  pagesift::device_pool pool;
  pagesift::allocator<char> bytes{pool};
  pagesift::allocator<wide> wides{pool};
  for (const std::size_t n : {std::size_t{1}, std::size_t{3}, std::size_t{1000}}) {
    const auto p = bytes.allocate(n);
    const auto q = wides.allocate(n);
    CHECK(reinterpret_cast<std::uintptr_t>(p.get()) % 256 == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(q.get()) % 512 == 0);
    bytes.deallocate(p, n);
    wides.deallocate(q, n);
  }
  CHECK(pool.stats().in_use == 0);
}

TEST_CASE("an empty vector takes no memory, and null may be given back") {
  pagesift::device_pool pool;
  vector v{allocator{pool}};
  vector sized(0, 1, allocator{pool});
  v = sized;
  v.clear();
  v.shrink_to_fit();
  allocator{pool}.deallocate(allocator::pointer{}, 0);
  CHECK(pool.stats().held == 0);
  CHECK(pool.stats().rejected_frees == 0);
}

TEST_CASE(
    "an exception that unwinds past vectors and buffers survives, and all memory comes back") {
  pagesift::device_pool pool;
  const auto fail_half_way = [&] {
    const vector v(1000, 1, allocator{pool});
    const pagesift::device_buffer<int> array{1000, pool};
    throw std::runtime_error{"first"};
  };
  CHECK_THROWS_WITH_AS(fail_half_way(), "first", std::runtime_error);
  CHECK(pool.stats().in_use == 0);
}

}  // namespace
}  // namespace pagesift_test
