// An array in device memory that is filled from and read into memory of the host.
#pragma once

#include <pagesift/adapters/system.hpp>
#include <pagesift/backend/backend.hpp>
#include <pagesift/core/bytes.hpp>
#include <pagesift/core/error.hpp>
#include <pagesift/core/size_class.hpp>
#include <pagesift/pool/pool_handle.hpp>

#if PAGESIFT_HAS_THRUST
#include <thrust/device_ptr.h>
#endif

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

namespace pagesift {
namespace host_range {

/// Whether `Range` has data() and size() and its elements are `Element`, `const` at most added.
template <typename Range, typename Element>
using if_of = std::enable_if_t<
    std::is_convertible_v<std::remove_pointer_t<decltype(std::data(std::declval<Range&>()))> (*)[],
                          Element (*)[]> &&
        std::is_convertible_v<decltype(std::size(std::declval<Range&>())), std::size_t>,
    int>;

}  // namespace host_range

inline namespace PAGESIFT_SYSTEM_NAMESPACE {

/// An array of `T` in a pool's memory, not initialised. It is allocated, copied from and to, and
/// freed in the order of one stream; work on other streams must be ordered against that by the
/// user. The pool must outlive it. Used by one thread at a time.
template <typename T>
class device_buffer {
  static_assert(std::is_trivially_copyable_v<T>,
                "pagesift::device_buffer<T>: T must be trivially copyable, for its elements are "
                "copied between host and device byte by byte");

 public:
  using value_type = T;
  using size_type = std::size_t;

  /// Room for `count` elements from the pool that `pool` names, by default the default pool of the
  /// current device. An empty buffer takes no memory.
  /// \throws size_overflow where the bytes do not fit the address space, and what the pool's
  /// `allocate` throws.
  explicit device_buffer(std::size_t count, pool_handle<device_pool> pool = {}, stream on = {})
      : pool_{&pool.pool()}, stream_{on}, size_{count} {
    const std::size_t bytes = array_bytes(count, sizeof(T));
    if (count != 0) {
      data_ =
          static_cast<T*>(pool_->allocate(bytes, std::max(alignof(T), default_alignment), stream_));
    }
  }
  device_buffer(std::size_t count, device_pool& pool, stream on = {})
      : device_buffer{count, pool.handle(), on} {}

  /// The moved-from buffer is empty.
  device_buffer(device_buffer&& other) noexcept
      : pool_{other.pool_},
        stream_{other.stream_},
        size_{std::exchange(other.size_, 0)},
        data_{std::exchange(other.data_, nullptr)} {}
  device_buffer& operator=(device_buffer&& other) noexcept {
    device_buffer taken{std::move(other)};
    swap(*this, taken);
    return *this;
  }

  /// Work submitted to the buffer's stream so far may still use the memory.
  ~device_buffer() {
    if (data_ != nullptr) {
      pool_->deallocate(data_, size_ * sizeof(T), stream_);
    }
  }

  friend void swap(device_buffer& a, device_buffer& b) noexcept {
    std::swap(a.pool_, b.pool_);
    std::swap(a.stream_, b.stream_);
    std::swap(a.size_, b.size_);
    std::swap(a.data_, b.data_);
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// Device memory: on CUDA the host must not read or write through it. Null where empty.
  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }

#if PAGESIFT_HAS_THRUST
  // Thrust's algorithms see from these that the memory is the device's.
  [[nodiscard]] thrust::device_ptr<T> begin() noexcept { return thrust::device_ptr<T>{data_}; }
  [[nodiscard]] thrust::device_ptr<T> end() noexcept { return begin() + distance(); }
  [[nodiscard]] thrust::device_ptr<const T> begin() const noexcept {
    return thrust::device_ptr<const T>{data_};
  }
  [[nodiscard]] thrust::device_ptr<const T> end() const noexcept { return begin() + distance(); }
#endif

  /// Fills the buffer with the `count` elements at `host`, after the work submitted to its stream
  /// so far. Done when it returns. Allocates nothing.
  /// \throws invalid_argument unless `count` is the buffer's size; backend_error where the copy
  /// fails, or the stream is capturing a graph: the capture is still valid then; process_error
  /// where the device was reset, in a forked child, and once the process has begun to exit.
  void scatter(const T* host, std::size_t count) {
    require_size("scatter", count);
    if (count != 0) {
      auto& backend = pool_->backend_within_reach();
      require_ok(backend, backend.copy_to_device(data_, host, count * sizeof(T), stream_));
    }
  }
  /// The same from anything with data() and size(): a vector, an array.
  template <typename Range, host_range::if_of<const Range, const T> = 0>
  void scatter(const Range& host) {
    scatter(std::data(host), std::size(host));
  }

  /// Copies the buffer into the `count` elements at `host`, after the work submitted to its stream
  /// so far. Done when it returns. Allocates nothing. \throws as `scatter`.
  void gather(T* host, std::size_t count) const {
    require_size("gather", count);
    if (count != 0) {
      auto& backend = pool_->backend_within_reach();
      require_ok(backend, backend.copy_to_host(host, data_, count * sizeof(T), stream_));
    }
  }
  /// The same into anything with data() and size().
  template <typename Range, host_range::if_of<Range, T> = 0>
  void gather(Range&& host) const {
    gather(std::data(host), std::size(host));
  }

 private:
  void require_size(const char* what, std::size_t count) const {
    if (count != size_) {
      throw invalid_argument{std::string{what} + " needs as many elements as the buffer has, " +
                             std::to_string(size_) + ", got " + std::to_string(count)};
    }
  }

  [[nodiscard]] std::ptrdiff_t distance() const noexcept {
    return static_cast<std::ptrdiff_t>(size_);
  }

  device_pool* pool_;
  stream stream_;
  std::size_t size_;
  T* data_ = nullptr;
};

}  // namespace PAGESIFT_SYSTEM_NAMESPACE
}  // namespace pagesift
