// An allocator for containers of device memory.
#pragma once

#include <pagesift/adapters/system.hpp>
#include <pagesift/adapters/wait_for_stream.hpp>
#include <pagesift/core/bytes.hpp>
#include <pagesift/core/size_class.hpp>
#include <pagesift/pool/pool_handle.hpp>
#include <pagesift/pool/return_memory.hpp>

#include <thrust/device_ptr.h>
#include <thrust/device_reference.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace pagesift {
inline namespace PAGESIFT_SYSTEM_NAMESPACE {

/// An allocator for containers such as `thrust::device_vector`, bound to a pool and a stream:
/// blocks are freed in the order of that stream, and where it is the default stream they are taken
/// in its order too. Thrust's containers fill and copy on the default stream whatever stream their
/// allocator has; a block for another stream is therefore handed out when the host has seen that
/// stream's work so far done.
///
/// A default-made allocator binds itself to the default pool of the device that is current at its
/// first allocation and stays with it. Copies share what the original is bound to. The pool must
/// outlive all containers. One allocator is used by one thread at a time, as its container is.
template <typename T>
class allocator {
 public:
  using value_type = T;
  using pointer = thrust::device_ptr<T>;
  using const_pointer = thrust::device_ptr<const T>;
  using reference = thrust::device_reference<T>;
  using const_reference = thrust::device_reference<const T>;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;

  // A container that takes over another's block must take over what can free it. Thrust does not
  // compare allocators where they stay behind: the block would go to the wrong pool.
  using propagate_on_container_copy_assignment = std::true_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;
  using is_always_equal = std::false_type;

  template <typename U>
  struct rebind {
    using other = allocator<U>;
  };

  allocator() noexcept = default;
  explicit allocator(pool_handle<device_pool> pool, stream on = {}) noexcept
      : pool_{pool}, stream_{on} {}
  explicit allocator(device_pool& pool, stream on = {}) noexcept : allocator{pool.handle(), on} {}

  /// The same pool and stream, for other elements.
  template <typename U>
  allocator(const allocator<U>& other) noexcept : pool_{other.pool_}, stream_{other.stream_} {}

  /// Room for `count` elements, not initialised, aligned to 256 bytes or to `T`'s alignment where
  /// that is larger. Never null.
  /// \throws size_overflow where the bytes do not fit the address space, as for a negative count;
  /// what the pool's `allocate` throws; backend_error where waiting for the stream fails.
  [[nodiscard]] pointer allocate(size_type count) {
    const std::size_t bytes = array_bytes(count, sizeof(T));
    device_pool& pool = pool_.pool();
    void* const p = pool.allocate(bytes, std::max(alignof(T), default_alignment), stream_);
    pool_ = pool.handle();
    if (!is_default_stream(stream_)) {
      wait_for_stream(pool, p, bytes, stream_);
    }
    return pointer{static_cast<T*>(p)};
  }

  /// Gives memory back to the pool; work submitted so far to this allocator's stream may still use
  /// it. `count` is as it was at `allocate`.
  void deallocate(pointer p, size_type count) noexcept {
    return_memory(pool_, p.get(), count * sizeof(T), stream_);
  }

  /// Whether each can free what the other allocated, in the order in which it was used.
  friend bool operator==(const allocator& a, const allocator& b) noexcept {
    return a.pool_ == b.pool_ && a.stream_ == b.stream_;
  }
  friend bool operator!=(const allocator& a, const allocator& b) noexcept { return !(a == b); }

 private:
  template <typename U>
  friend class allocator;

  pool_handle<device_pool> pool_;
  stream stream_ = {};
};

}  // namespace PAGESIFT_SYSTEM_NAMESPACE
}  // namespace pagesift
