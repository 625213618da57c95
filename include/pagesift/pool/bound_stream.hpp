// A pool and one of its streams, looked up once.
#pragma once

#include <pagesift/core/error.hpp>
#include <pagesift/core/size_class.hpp>
#include <pagesift/front/last_streams.hpp>

#include <cstddef>

namespace pagesift {

/// What `pool.on(stream)` returns: requests on that stream whose hits do not ask the driver for its
/// identity again. With `checks::trusted` a hit does not ask it anything. Names the pool and the
/// stream, owns neither, and is freely copied; both must outlive it. Where the handle names another
/// stream in each thread (`cudaStreamPerThread`), it belongs to the thread that made it.
template <typename Pool>
class bound_stream {
 public:
  using pool_type = Pool;
  using stream_type = typename Pool::stream_type;

  /// As `pool.allocate(bytes, stream)`. \throws the same
  [[nodiscard]] void* allocate(std::size_t bytes) const {
    return allocate(bytes, default_alignment);
  }
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) const {
    return pool_->allocate_bound(*this, bytes, alignment);
  }

  /// As `pool.deallocate(p, bytes, stream)`, of memory last used by work on this stream. The
  /// stream must not be capturing.
  void deallocate(void* p, std::size_t bytes) const noexcept {
    pool_->deallocate(p, bytes, stream_);
  }

  [[nodiscard]] Pool& pool() const noexcept { return *pool_; }
  [[nodiscard]] stream_type stream() const noexcept { return stream_; }

 private:
  friend Pool;
  bound_stream(Pool& pool, stream_type stream, stream_id id) noexcept
      : pool_{&pool}, stream_{stream}, id_{id} {}

  Pool* pool_;
  stream_type stream_;
  stream_id id_;
};

}  // namespace pagesift
