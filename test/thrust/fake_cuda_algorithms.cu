// No algorithm takes memory past the pool: counted on the host's side of Thrust's CUDA system. The
// kernels do nothing here, so no result is looked at.
#include "each_policy.hpp"
#include "fake_cuda.hpp"

#include <thrust/adjacent_difference.h>
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/extrema.h>
#include <thrust/find.h>
#include <thrust/for_each.h>
#include <thrust/logical.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/scan.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

#include <string>

namespace pagesift_test {
namespace {

/// Four arrays of ints and a stream that the algorithms run on.
struct scene {
  static constexpr std::ptrdiff_t n = 20'000;

  side_stream side;
  pagesift::device_pool pool;
  std::vector<int> memory = std::vector<int>(4 * n);
  thrust::device_ptr<int> a{memory.data()};
  thrust::device_ptr<int> b = a + n;
  thrust::device_ptr<int> c = b + n;
  thrust::device_ptr<int> d = c + n;

  /// Runs `algorithm(policy)` twice: none of it may go to CUDA past the pool, the second time
  /// nothing at all, and all blocks must be named to the pool with the policy's stream.
  template <typename Algorithm>
  void expect_pooled(const char* name, bool takes_memory, Algorithm&& algorithm) {
    INFO(std::string{name});
    const auto policy = pool.policy_nosync(side.get());
    const std::uint64_t before = pool.stats().hits + pool.stats().misses;
    fake_cuda::clear_log();
    algorithm(policy);
    const pagesift::pool_stats warm = pool.stats();
    algorithm(policy);
    const pagesift::pool_stats steady = pool.stats();
    for (const char* const call : {"cudaMalloc", "cudaMallocAsync", "cudaFree", "cudaFreeAsync"}) {
      CHECK(fake_cuda::count(call) == 0);
    }
    CHECK(steady.backend_allocations == warm.backend_allocations);
    CHECK((steady.hits + steady.misses > before) == takes_memory);
    CHECK(steady.in_use == 0);
    CHECK(steady.rejected_frees == 0);
    for (const fake_cuda::call& call : fake_cuda::log()) {
      if (call.name == "cuStreamGetId") {
        CHECK(call.stream == side.get());
      }
    }
  }
};

struct nothing {
  __device__ void operator()(int&) const {}
};

TEST_CASE("element-wise algorithms take no memory") {
  scene s;
  s.expect_pooled("for_each", false,
                  [&](const auto& policy) { thrust::for_each(policy, s.a, s.b, nothing{}); });
  s.expect_pooled("transform", false,
                  [&](const auto& policy) { thrust::transform(policy, s.a, s.b, s.c, square{}); });
  s.expect_pooled("copy", false, [&](const auto& policy) { thrust::copy(policy, s.a, s.b, s.c); });
}

TEST_CASE("sorts and merges take all their memory from the pool") {
  scene s;
  s.expect_pooled("sort", true, [&](const auto& policy) { thrust::sort(policy, s.a, s.b); });
  s.expect_pooled("sort by merging", true,
                  [&](const auto& policy) { thrust::sort(policy, s.a, s.b, by_last_digits{}); });
  s.expect_pooled("stable_sort_by_key", true,
                  [&](const auto& policy) { thrust::stable_sort_by_key(policy, s.a, s.b, s.c); });
  s.expect_pooled("merge", true,
                  [&](const auto& policy) { thrust::merge(policy, s.a, s.b, s.b, s.c, s.c); });
  s.expect_pooled("set_union", true,
                  [&](const auto& policy) { thrust::set_union(policy, s.a, s.b, s.b, s.c, s.c); });
}

TEST_CASE("scans and reductions take all their memory from the pool") {
  scene s;
  s.expect_pooled("inclusive_scan", true,
                  [&](const auto& policy) { thrust::inclusive_scan(policy, s.a, s.b, s.c); });
  s.expect_pooled("inclusive_scan_by_key", true, [&](const auto& policy) {
    thrust::inclusive_scan_by_key(policy, s.a, s.b, s.b, s.c);
  });
  s.expect_pooled("adjacent_difference", true,
                  [&](const auto& policy) { thrust::adjacent_difference(policy, s.a, s.b, s.c); });
  s.expect_pooled("reduce", true,
                  [&](const auto& policy) { (void)thrust::reduce(policy, s.a, s.b); });
  s.expect_pooled("count_if", true,
                  [&](const auto& policy) { (void)thrust::count_if(policy, s.a, s.b, is_odd{}); });
  s.expect_pooled("minmax_element", true,
                  [&](const auto& policy) { (void)thrust::minmax_element(policy, s.a, s.b); });
  s.expect_pooled("reduce_by_key", true, [&](const auto& policy) {
    (void)thrust::reduce_by_key(policy, s.a, s.b, s.b, s.c, s.d);
  });
}

TEST_CASE("selections and searches take all their memory from the pool") {
  scene s;
  s.expect_pooled("unique", true,
                  [&](const auto& policy) { (void)thrust::unique(policy, s.a, s.b); });
  s.expect_pooled("unique_by_key", true,
                  [&](const auto& policy) { (void)thrust::unique_by_key(policy, s.a, s.b, s.c); });
  s.expect_pooled("copy_if", true, [&](const auto& policy) {
    (void)thrust::copy_if(policy, s.a, s.b, s.c, is_odd{});
  });
  s.expect_pooled("remove_if", true,
                  [&](const auto& policy) { (void)thrust::remove_if(policy, s.a, s.b, is_odd{}); });
  s.expect_pooled("partition", true,
                  [&](const auto& policy) { (void)thrust::partition(policy, s.a, s.b, is_odd{}); });
  s.expect_pooled("find", true,
                  [&](const auto& policy) { (void)thrust::find(policy, s.a, s.b, 7); });
  s.expect_pooled("any_of", true,
                  [&](const auto& policy) { (void)thrust::any_of(policy, s.a, s.b, is_odd{}); });
  s.expect_pooled("lower_bound of one value", true,
                  [&](const auto& policy) { (void)thrust::lower_bound(policy, s.a, s.b, 3); });
}

TEST_CASE("algorithms on empty ranges and on one element take no memory past the pool") {
  scene s;
  for (const std::ptrdiff_t n : {0, 1}) {
    s.expect_pooled("sort", true, [&](const auto& policy) { thrust::sort(policy, s.a, s.a + n); });
    s.expect_pooled("reduce", true,
                    [&](const auto& policy) { (void)thrust::reduce(policy, s.a, s.a + n); });
    s.expect_pooled("inclusive_scan", true,
                    [&](const auto& policy) { thrust::inclusive_scan(policy, s.a, s.a + n, s.c); });
    s.expect_pooled("copy_if", true, [&](const auto& policy) {
      (void)thrust::copy_if(policy, s.a, s.a + n, s.c, is_odd{});
    });
  }
}

}  // namespace
}  // namespace pagesift_test
