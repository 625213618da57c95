// A block: what a user gets. Its bookkeeping lies out of band; the block itself is never touched.
#pragma once

#include <pagesift/backend/backend.hpp>
#include <pagesift/core/size_class.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace pagesift {

struct page_run;

/// Numbers the stretches of a stream's life between two seals; counted up across a pool's streams,
/// so an epoch never repeats.
using epoch = std::uint64_t;

/// Stands for no stream: the host has seen the last use complete, any stream may take the memory.
inline constexpr stream_id quiet_stream = ~stream_id{0};

/// Stands for a stream that cannot be named (it was capturing, or the caller did not know it):
/// only a fence of the whole context shows that the last use is complete.
inline constexpr stream_id unordered_stream = ~stream_id{0} - 1;

/// Where idle memory was last used: on `stream`, before the seal of epoch `freed`.
struct last_use {
  stream_id stream = quiet_stream;
  epoch freed = 0;

  [[nodiscard]] bool quiet() const noexcept { return stream == quiet_stream; }
};

/// `taken`: out of every cache, on its way to a user or back, or waiting for uses on other streams.
/// `shared`: in use, and marked as used on other streams.
enum class block_state : unsigned char { uncut, idle, taken, in_use, shared };

/// One block of a run. Linked into a cache of its stream while idle, so a free allocates nothing.
/// Of a cache line's size: threads that use neighbouring blocks do not slow each other down.
struct alignas(64) block {
  std::byte* address = nullptr;
  page_run* run = nullptr;
  block* older = nullptr;        ///< while idle, the one freed before it in the same cache
  last_use use;                  ///< while in use, `stream` is the one it was handed out on
  std::size_t needed_bytes = 0;  ///< that the request it serves asked for, while in use
  std::uint16_t requested = 0;   ///< class of that request
  unsigned char cache = 0;       ///< which cache of its stream it waits in, while idle
  std::atomic<block_state> state{block_state::uncut};

  [[nodiscard]] bool is(block_state expected) const noexcept {
    return state.load(std::memory_order_relaxed) == expected;
  }
  void set(block_state next) noexcept { state.store(next, std::memory_order_release); }

  [[nodiscard]] bool in_users_hands() const noexcept {
    return is(block_state::in_use) || is(block_state::shared);
  }

  /// Takes it back from its user; false if no user has it, or another thread was first.
  [[nodiscard]] bool claim(block_state expected = block_state::in_use) noexcept {
    return state.compare_exchange_strong(expected, block_state::taken, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }

  /// The same for callers who promise that no other thread frees it now: no atomic exchange.
  [[nodiscard]] bool claim_trusted() noexcept {
    const bool in_use = state.load(std::memory_order_acquire) == block_state::in_use;
    if (in_use) {
      state.store(block_state::taken, std::memory_order_relaxed);
    }
    return in_use;
  }
};

/// Idle blocks of one cache and class, the newest free on top. Taking a block from elsewhere than
/// the top takes time in proportion to how deep it lies. Only `empty` may be asked by a thread that
/// does not hold the cache's lock.
class block_stack {
 public:
  [[nodiscard]] bool empty() const noexcept { return newest() == nullptr; }
  [[nodiscard]] block* newest() const noexcept { return newest_.load(std::memory_order_relaxed); }

  [[nodiscard]] block* oldest() const noexcept {
    block* b = newest();
    while (b != nullptr && b->older != nullptr) {
      b = b->older;
    }
    return b;
  }

  void push(block& b) noexcept {
    b.older = newest();
    set_newest(&b);
  }

  /// Precondition: not empty.
  block& pop() noexcept {
    block& b = *newest();
    set_newest(b.older);
    return b;
  }

  /// Puts a block below those on top for which `is_newer(const block&)` holds.
  template <typename IsNewer>
  void push_below(block& b, IsNewer&& is_newer) noexcept {
    block* above = nullptr;
    b.older = newest();
    while (b.older != nullptr && is_newer(*b.older)) {
      above = std::exchange(b.older, b.older->older);
    }
    if (above != nullptr) {
      above->older = &b;
    } else {
      set_newest(&b);
    }
  }

  /// Takes out every block for which `leaves(block&)` holds; it may go into another stack there.
  template <typename Leaves>
  void remove_if(Leaves&& leaves) {
    block* stays = nullptr;
    for (block* b = newest(); b != nullptr;) {
      block* const older = b->older;
      if (!leaves(*b)) {
        stays = b;
      } else if (stays != nullptr) {
        stays->older = older;
      } else {
        set_newest(older);
      }
      b = older;
    }
  }

 private:
  void set_newest(block* b) noexcept { newest_.store(b, std::memory_order_relaxed); }

  std::atomic<block*> newest_{nullptr};
};

}  // namespace pagesift
