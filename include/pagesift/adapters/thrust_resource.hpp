// A pool as a memory resource of thrust::mr, for containers and policies that take one.
#pragma once

#include <pagesift/adapters/system.hpp>
#include <pagesift/pool/pool_handle.hpp>
#include <pagesift/pool/return_memory.hpp>

#include <thrust/device_ptr.h>
#include <thrust/mr/memory_resource.h>

#include <cstddef>
#include <optional>

namespace pagesift {
inline namespace PAGESIFT_SYSTEM_NAMESPACE {

/// A pool for `thrust::mr::allocator<T, pagesift::thrust_resource>` and for `par(&resource)`.
/// Thrust does not tell a resource which stream it is asked for. So one that was given no stream
/// hands out memory that is good on every stream, and waits for the device when it gets memory
/// back, as cudaFree does; pagesift's own policies and `pagesift::allocator` do not have to.
///
/// It does not own the pool, which must outlive it; containers need the resource itself to outlive
/// them. Several threads may use it at once. It is equal to itself alone.
class thrust_resource final : public thrust::mr::memory_resource<thrust::device_ptr<void>> {
 public:
  /// For work on any stream. By default names the default pool of the device that is current at
  /// each call.
  explicit thrust_resource(pool_handle<device_pool> pool = {}) noexcept : pool_{pool} {}
  explicit thrust_resource(device_pool& pool) noexcept : thrust_resource{pool.handle()} {}

  /// For work on `on` alone, in its order: for policies that run there. Thrust's containers fill
  /// and copy on the default stream, so theirs must be that one, `pagesift::stream{}`.
  thrust_resource(pool_handle<device_pool> pool, stream on) noexcept : pool_{pool}, stream_{on} {}
  thrust_resource(device_pool& pool, stream on) noexcept : thrust_resource{pool.handle(), on} {}

  /// `bytes` bytes at a multiple of `alignment`, of 256 at least. \throws what the pool's
  /// `allocate` and `allocate_sync` throw
  [[nodiscard]] pointer do_allocate(std::size_t bytes, std::size_t alignment) override {
    device_pool& pool = pool_.pool();
    return pointer{stream_ ? pool.allocate(bytes, alignment, *stream_)
                           : pool.allocate_sync(bytes, alignment)};
  }

  /// Throws nothing.
  void do_deallocate(pointer p, std::size_t bytes, std::size_t /*alignment*/) noexcept override {
    if (stream_) {
      return_memory(pool_, p.get(), bytes, *stream_);
    } else {
      return_memory(pool_, p.get(), bytes);
    }
  }

 private:
  pool_handle<device_pool> pool_;
  std::optional<stream> stream_;
};

}  // namespace PAGESIFT_SYSTEM_NAMESPACE
}  // namespace pagesift
