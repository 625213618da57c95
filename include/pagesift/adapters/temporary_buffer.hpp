// Tells the pool which stream a Thrust algorithm's temporary storage is for.
//
// Thrust's protocol for allocators has no stream in it: `thrust::cuda::par(handle).on(stream)`
// would call `handle.allocate(bytes)`. Thrust looks get_temporary_buffer and
// return_temporary_buffer up by the policy's type, though, and these overloads are more specialised
// than its own. Should a later Thrust look for other names, they are not found, and the handle's
// own allocate and deallocate serve: slower, and safe on every stream.
#pragma once

#include <pagesift/adapters/system.hpp>
#include <pagesift/backend/host.hpp>
#include <pagesift/core/bytes.hpp>
#include <pagesift/pool/pool_handle.hpp>
#include <pagesift/pool/return_memory.hpp>

#include <thrust/detail/raw_pointer_cast.h>
#include <thrust/execution_policy.h>

#if defined(PAGESIFT_DEVICE_IS_CUDA)
#include <thrust/system/cuda/execution_policy.h>
#endif

#include <cstddef>
#include <type_traits>

namespace pagesift {
inline namespace PAGESIFT_SYSTEM_NAMESPACE {
namespace temporary_storage {

/// A Thrust policy with an allocator.
template <typename Handle, template <typename> class System>
using policy = thrust::detail::execute_with_allocator<Handle, System>;

#if defined(PAGESIFT_DEVICE_IS_CUDA)

/// Whether `Policy` runs on a CUDA stream.
template <typename Policy>
inline constexpr bool is_cuda =
    std::is_base_of_v<thrust::cuda_cub::execution_policy<Policy>, Policy>;

template <typename Pool, typename Policy>
[[nodiscard]] auto stream_of(Policy& policy) {
  if constexpr (is_cuda<Policy>) {
    static_assert(!std::is_same_v<typename Pool::stream_type, host_stream>,
                  "pagesift: a CUDA policy needs a pool of device memory");
    return thrust::cuda_cub::stream(policy);
  } else {
    return host_stream{};
  }
}

#else

template <typename Policy>
inline constexpr bool is_cuda = false;

template <typename Pool, typename Policy>
[[nodiscard]] host_stream stream_of(Policy&) {
  return {};
}

#endif

/// Enables the overloads where the stream is known: work of a host policy in host memory is done
/// when the call returns. Anything else keeps to the handle's own allocate.
template <typename Pool, typename Policy>
using if_stream_known =
    std::enable_if_t<is_cuda<Policy> || std::is_same_v<typename Pool::stream_type, host_stream>,
                     int>;

/// What Thrust reads of an answer, by these names. Its own type for it has moved between versions.
template <typename T>
struct buffer {
  T* first;
  std::ptrdiff_t second;
};

template <typename T, typename Pool, typename Policy>
[[nodiscard]] buffer<T> take(const pool_handle<Pool>& pool, Policy& policy, std::ptrdiff_t count) {
  const std::size_t bytes = array_bytes(checked_count(count), sizeof(T));
  return {static_cast<T*>(pool.pool().allocate(bytes, stream_of<Pool>(policy))), count};
}

template <typename T, typename Pool, typename Policy>
void give_back(const pool_handle<Pool>& pool, Policy& policy, T* p, std::ptrdiff_t count) noexcept {
  return_memory(pool, p, static_cast<std::size_t>(count) * sizeof(T), stream_of<Pool>(policy));
}

}  // namespace temporary_storage

/// Called by Thrust's algorithms, as are the others. \throws what the pool's `allocate` throws.
template <typename T, typename Pool, template <typename> class System,
          temporary_storage::if_stream_known<
              Pool, temporary_storage::policy<pool_handle<Pool>, System>> = 0>
temporary_storage::buffer<T> get_temporary_buffer(
    temporary_storage::policy<pool_handle<Pool>, System>& policy, std::ptrdiff_t count) {
  return temporary_storage::take<T>(policy.get_allocator(), policy, count);
}

template <typename Pool, template <typename> class System, typename Pointer,
          temporary_storage::if_stream_known<
              Pool, temporary_storage::policy<pool_handle<Pool>, System>> = 0>
void return_temporary_buffer(temporary_storage::policy<pool_handle<Pool>, System>& policy,
                             Pointer p, std::ptrdiff_t count) noexcept {
  temporary_storage::give_back(policy.get_allocator(), policy, thrust::raw_pointer_cast(p), count);
}

// A handle that is a named variable travels in the policy as a reference, which is another type.

template <typename T, typename Pool, template <typename> class System,
          temporary_storage::if_stream_known<
              Pool, temporary_storage::policy<pool_handle<Pool>&, System>> = 0>
temporary_storage::buffer<T> get_temporary_buffer(
    temporary_storage::policy<pool_handle<Pool>&, System>& policy, std::ptrdiff_t count) {
  return temporary_storage::take<T>(policy.get_allocator(), policy, count);
}

template <typename Pool, template <typename> class System, typename Pointer,
          temporary_storage::if_stream_known<
              Pool, temporary_storage::policy<pool_handle<Pool>&, System>> = 0>
void return_temporary_buffer(temporary_storage::policy<pool_handle<Pool>&, System>& policy,
                             Pointer p, std::ptrdiff_t count) noexcept {
  temporary_storage::give_back(policy.get_allocator(), policy, thrust::raw_pointer_cast(p), count);
}

}  // namespace PAGESIFT_SYSTEM_NAMESPACE
}  // namespace pagesift
