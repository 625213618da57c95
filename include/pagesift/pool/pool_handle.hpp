// A pointer to a pool that is an allocator: what Thrust policies and containers carry around.
#pragma once

#include <pagesift/pool/return_memory.hpp>

#include <cstddef>

namespace pagesift {

/// Names a pool, does not own it; as large as a pointer and freely copied. A default-made handle
/// names the default pool of the device that is current at each call.
///
/// As a Thrust allocator (`thrust::cuda::par(pool.handle())`) it hands out bytes. Adapters that
/// know the stream pass it on; `allocate(n)` and `deallocate(p, n)` are for callers that do not,
/// and are safe on every stream (see `basic_pool::allocate_sync`).
template <typename Pool>
class pool_handle {
 public:
  using pool_type = Pool;
  using value_type = char;

  constexpr pool_handle() noexcept = default;
  constexpr explicit pool_handle(Pool& pool) noexcept : pool_{&pool} {}

  /// The pool named. \throws what making a default pool throws.
  [[nodiscard]] Pool& pool() const { return pool_ != nullptr ? *pool_ : Pool::default_pool(); }

  [[nodiscard]] char* allocate(std::size_t bytes) const {
    return static_cast<char*>(pool().allocate_sync(bytes));
  }
  void deallocate(char* p, std::size_t bytes) const noexcept { return_memory(*this, p, bytes); }

  friend bool operator==(const pool_handle& a, const pool_handle& b) noexcept {
    return a.pool_ == b.pool_;
  }
  friend bool operator!=(const pool_handle& a, const pool_handle& b) noexcept { return !(a == b); }

 private:
  Pool* pool_ = nullptr;
};

}  // namespace pagesift
