// Tells the pool which stream a Thrust algorithm's temporary storage is for.
//
// Thrust's protocol for allocators has no stream in it: `thrust::cuda::par(handle).on(stream)`
// would call `handle.allocate(bytes)`. Thrust looks get_temporary_buffer and
// return_temporary_buffer up by the policy's type, though, and these overloads are more specialised
// than its own. Should a later Thrust look for other names, they are not found, and the handle's
// own allocate and deallocate serve: slower, and safe on every stream.
#pragma once

#include <pagesift/adapters/return_memory.hpp>
#include <pagesift/core/bytes.hpp>
#include <pagesift/pool/pool_handle.hpp>

#include <thrust/detail/raw_pointer_cast.h>
#include <thrust/execution_policy.h>
#include <thrust/system/cuda/execution_policy.h>

#include <cstddef>
#include <type_traits>

namespace pagesift {
namespace temporary_storage {

template <typename Handle, template <typename> class System>
using policy = thrust::detail::execute_with_allocator<Handle, System>;

/// Whether `Policy` runs on a CUDA stream. Others, such as `thrust::cpp::par(handle)`, keep to the
/// handle's own allocate.
template <typename Policy>
using if_on_stream =
    std::enable_if_t<std::is_base_of_v<thrust::cuda_cub::execution_policy<Policy>, Policy>, int>;

/// What Thrust reads of an answer, by these names. Its own type for it has moved between versions.
template <typename T>
struct buffer {
  T* first;
  std::ptrdiff_t second;
};

template <typename T, typename Policy>
[[nodiscard]] buffer<T> take(Policy& policy, std::ptrdiff_t count) {
  const std::size_t bytes = array_bytes(checked_count(count), sizeof(T));
  auto& pool = policy.get_allocator().pool();
  return {static_cast<T*>(pool.allocate(bytes, thrust::cuda_cub::stream(policy))), count};
}

template <typename Policy, typename T>
void give_back(Policy& policy, T* p, std::ptrdiff_t count) noexcept {
  return_memory(policy.get_allocator(), p, static_cast<std::size_t>(count) * sizeof(T),
                thrust::cuda_cub::stream(policy));
}

}  // namespace temporary_storage

/// Called by Thrust's algorithms, as are the others. \throws what the pool's `allocate` throws.
template <typename T, typename Pool, template <typename> class System,
          temporary_storage::if_on_stream<temporary_storage::policy<pool_handle<Pool>, System>> = 0>
auto get_temporary_buffer(temporary_storage::policy<pool_handle<Pool>, System>& policy,
                          std::ptrdiff_t count) {
  return temporary_storage::take<T>(policy, count);
}

template <typename Pool, template <typename> class System, typename Pointer,
          temporary_storage::if_on_stream<temporary_storage::policy<pool_handle<Pool>, System>> = 0>
void return_temporary_buffer(temporary_storage::policy<pool_handle<Pool>, System>& policy,
                             Pointer p, std::ptrdiff_t count) noexcept {
  temporary_storage::give_back(policy, thrust::raw_pointer_cast(p), count);
}

// A handle that is a named variable travels in the policy as a reference, which is another type.

template <
    typename T, typename Pool, template <typename> class System,
    temporary_storage::if_on_stream<temporary_storage::policy<pool_handle<Pool>&, System>> = 0>
auto get_temporary_buffer(temporary_storage::policy<pool_handle<Pool>&, System>& policy,
                          std::ptrdiff_t count) {
  return temporary_storage::take<T>(policy, count);
}

template <
    typename Pool, template <typename> class System, typename Pointer,
    temporary_storage::if_on_stream<temporary_storage::policy<pool_handle<Pool>&, System>> = 0>
void return_temporary_buffer(temporary_storage::policy<pool_handle<Pool>&, System>& policy,
                             Pointer p, std::ptrdiff_t count) noexcept {
  temporary_storage::give_back(policy, thrust::raw_pointer_cast(p), count);
}

}  // namespace pagesift
