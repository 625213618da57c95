// The allocators under test. Each is made anew for every run of a benchmark, and has
//   static constexpr const char* name
//   static constexpr int warm_up_rounds                     of a workload before it is timed
//   static constexpr bool keeps_memory                      of what it is given back
//   void* allocate(std::size_t bytes, stream)               throws std::bad_alloc
//   void deallocate(void*, std::size_t bytes, stream)
//   void trim()                                             gives back what is not in use
//   figures report() const
// and, where it can reserve memory or be held to a limit, a constructor that takes a `setup`.
#pragma once

#include "fixed_block.hpp"
#include "pagesift.hpp"
#include "pagesift_bound.hpp"
#include "plain.hpp"
#include "thrust_pool.hpp"

#ifdef PAGESIFT_DEVICE_IS_CUDA
#include "cub_caching.hpp"
#include "cuda_malloc_async.hpp"
#endif
#ifdef PAGESIFT_BENCH_HAS_RMM
#include "rmm.hpp"
#endif

namespace bench {

template <typename... Allocators>
struct allocator_list {};

template <typename... Lists>
struct joined;
template <typename... First, typename... Second>
struct joined<allocator_list<First...>, allocator_list<Second...>> {
  using type = allocator_list<First..., Second...>;
};

/// RMM's, where it was found.
#ifdef PAGESIFT_BENCH_HAS_RMM
using rmm_allocators = allocator_list<rmm_pool, rmm_arena, rmm_binning>;
#else
using rmm_allocators = allocator_list<>;
#endif

/// Those that order memory by stream and serve several threads at once, and those that serve one:
/// when the cache of CUB's allocator is full, a free records an event that another thread may have
/// destroyed.
#ifdef PAGESIFT_DEVICE_IS_CUDA
using shared_stream_safe_allocators =
    joined<allocator_list<pagesift_pool, plain, cuda_malloc_async, cub_caching_tuned>,
           rmm_allocators>::type;
using unshared_allocators = allocator_list<cub_caching>;
#else
using shared_stream_safe_allocators = allocator_list<pagesift_pool, plain>;
using unshared_allocators = allocator_list<>;
#endif

/// Those that order memory by stream.
using stream_safe_allocators = joined<shared_stream_safe_allocators, unshared_allocators>::type;

/// Those that can have many blocks in use at once, and of these the ones for several threads.
using real_allocators = joined<stream_safe_allocators, allocator_list<thrust_pool>>::type;
using shared_allocators = joined<shared_stream_safe_allocators, allocator_list<thrust_pool>>::type;

/// pagesift for callers that stay on one stream.
using bound_allocators = allocator_list<pagesift_bound, pagesift_trusted>;

/// pagesift for who looks for a mistake; it reads and writes every block.
using checked_allocators = allocator_list<pagesift_checked>;

using limit_allocators = allocator_list<fixed_block>;

template <typename... Allocators, typename Function>
void for_each_allocator(allocator_list<Allocators...>, Function function) {
  (function(allocator_list<Allocators>{}), ...);
}

}  // namespace bench
