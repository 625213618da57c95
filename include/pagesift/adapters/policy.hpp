// Policies for Thrust's algorithms: temporary storage comes from a pool, ordered by stream.
#pragma once

#include <pagesift/adapters/system.hpp>
#include <pagesift/adapters/temporary_buffer.hpp>
#include <pagesift/pool/pool_handle.hpp>

#include <thrust/execution_policy.h>

namespace pagesift {
inline namespace PAGESIFT_SYSTEM_NAMESPACE {

#if defined(PAGESIFT_DEVICE_IS_CUDA)

/// A Thrust policy that takes temporary storage from a pool, in the order of its stream. Holds a
/// handle by value, so it is copied freely and may outlive the expression that made it; the pool
/// must outlive its use. `.on(stream)` gives the same policy on another stream. Algorithms return
/// when their work is done, as with `thrust::device`.
using device_policy =
    thrust::detail::execute_with_allocator<pool_handle<device_pool>,
                                           thrust::cuda_cub::execute_on_stream_base>;

/// As `device_policy`, but algorithms return without waiting where they have no result to return,
/// as with `thrust::cuda::par_nosync`. Their temporary storage may be reused on the same stream at
/// once, on another only when their work is done.
using device_nosync_policy =
    thrust::detail::execute_with_allocator<pool_handle<device_pool>,
                                           thrust::cuda_cub::execute_on_stream_nosync_base>;

#else

/// The device system under a name of its own: `thrust::device_execution_policy` is one name with
/// another meaning in each system, and the linker would take an algorithm of one for another's.
template <typename Derived>
struct system_policy : thrust::device_execution_policy<Derived> {};

/// A Thrust policy that takes temporary storage from a pool of host memory. Holds a handle by
/// value, so it is copied freely and may outlive the expression that made it; the pool must
/// outlive its use. There is one stream, on which all is done when a call returns.
class device_policy
    : public thrust::detail::execute_with_allocator<pool_handle<device_pool>, system_policy> {
  using base = thrust::detail::execute_with_allocator<pool_handle<device_pool>, system_policy>;

 public:
  explicit device_policy(pool_handle<device_pool> pool) : base{pool} {}

  [[nodiscard]] device_policy on(stream) const { return *this; }
};

using device_nosync_policy = device_policy;

#endif

/// Drop-in for `thrust::device`: the default pool of the device that is current at each call, on
/// the default stream. `pagesift::device.on(stream)` names another stream.
inline const device_policy device{pool_handle<device_pool>{}};

/// Drop-in for `thrust::cuda::par_nosync`, likewise. Equal to `device` on the host's systems.
inline const device_nosync_policy device_nosync{pool_handle<device_pool>{}};

/// What `pool.policy(stream)` returns.
[[nodiscard]] inline device_policy make_policy(device_pool& pool, stream on) {
  return device_policy{pool.handle()}.on(on);
}

/// What `pool.policy_nosync(stream)` returns.
[[nodiscard]] inline device_nosync_policy make_policy_nosync(device_pool& pool, stream on) {
  return device_nosync_policy{pool.handle()}.on(on);
}

}  // namespace PAGESIFT_SYSTEM_NAMESPACE
}  // namespace pagesift
