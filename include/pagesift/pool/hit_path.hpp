// The way of most calls: one cache of the stream, under that cache's lock and no other.
#pragma once

#include <pagesift/core/inlining.hpp>
#include <pagesift/pool/ordering.hpp>
#include <pagesift/pool/state.hpp>

#include <cstddef>
#include <cstdint>
#include <new>

namespace pagesift {

/// What a hit needs to know of a request.
struct wanted_block {
  std::size_t bytes = 0;
  class_index index = 0;
};

/// Gives a block that was taken for a request to its user. Preconditions: `cache` is locked, and is
/// of the stream that the block's last use now names.
template <typename Backend>
PAGESIFT_ALWAYS_INLINE void* hand_out(pool_state<Backend>& state, stream_cache& cache, block& b,
                                      const wanted_block& wanted) noexcept {
  b.requested = static_cast<std::uint16_t>(wanted.index);
  b.needed_bytes = wanted.bytes;
  cache.handed_out(b, wanted.index);
  if (state.options.exact_peaks) {
    state.caches.exact.handed_out(b.run->block_bytes);
  }
  b.set(block_state::in_use);
  return b.address;
}

/// Counts a block that was claimed from its user as idle. Precondition: `cache` is locked.
template <typename Backend>
PAGESIFT_ALWAYS_INLINE void count_back(pool_state<Backend>& state, stream_cache& cache,
                                       const block& b) noexcept {
  cache.taken_back(b);
  if (state.options.exact_peaks) {
    state.caches.exact.taken_back(b.run->block_bytes);
  }
}

/// Puts a block that was claimed from its user into a cache of the stream it was freed on.
/// Precondition: `cache` is locked.
template <typename Backend>
PAGESIFT_ALWAYS_INLINE void take_back(pool_state<Backend>& state, stream_cache& cache, block& b,
                                      epoch now) noexcept {
  count_back(state, cache, b);
  cache.push(b, {cache.stream, now});
}

/// Gives the calling thread a cache of its own on a stream whose caches it found in use.
template <typename Backend>
PAGESIFT_RARELY_CALLED void move_apart(pool_state<Backend>& state,
                                       remembered_stream<Backend>& known) noexcept {
  known.meetings = 0;
  const pool_lock lock{state.caches};
  if (known.record->id != known.id) {
    return;
  }
  try {
    known.cache = &known.record->cache_for(this_thread_number(), state.caches);
  } catch (const std::bad_alloc&) {  // then it goes on meeting others
  }
}

/// Holds the cache that the calling thread uses on a stream.
template <typename Backend>
class used_cache {
 public:
  PAGESIFT_ALWAYS_INLINE used_cache(pool_state<Backend>& state,
                                    remembered_stream<Backend>& known) noexcept
      : cache_{known.cache} {
    const thread_mark caller = this_thread_mark();
    entered_ = cache_->lock.enter(caller);
    if (!entered_ && !cache_->lock.try_lock(caller)) {
      meet(state, known, caller);
    }
  }
  PAGESIFT_ALWAYS_INLINE ~used_cache() {
    if (entered_) {
      cache_->lock.leave();
    } else {
      cache_->lock.unlock();
    }
  }
  used_cache(const used_cache&) = delete;
  used_cache& operator=(const used_cache&) = delete;

  [[nodiscard]] stream_cache& get() const noexcept { return *cache_; }

 private:
  /// Somebody else holds it: the slow path, or a thread that uses the same stream.
  PAGESIFT_RARELY_CALLED void meet(pool_state<Backend>& state, remembered_stream<Backend>& known,
                                   thread_mark caller) noexcept {
    constexpr unsigned meetings_before_moving = 8;
    if (!cache_->lock.biased_to(caller) && ++known.meetings == meetings_before_moving) {
      move_apart(state, known);
      cache_ = known.cache;
    }
    cache_->lock.lock(caller);
  }

  stream_cache* cache_;
  bool entered_;
};

/// A block from another of the stream's caches, or null.
template <typename Backend>
PAGESIFT_RARELY_CALLED void* hit_beside(pool_state<Backend>& state,
                                        const remembered_stream<Backend>& known,
                                        const wanted_block& wanted, class_index waiting) noexcept {
  void* found = nullptr;
  known.record->for_each_cache([&](stream_cache& cache) {
    if (found != nullptr || &cache == known.cache || !cache.may_have(waiting)) {
      return;
    }
    const cache_guard guard{cache.lock};
    block* b = cache.stream == known.id ? cache.pop(waiting) : nullptr;
    found = b == nullptr ? nullptr : hand_out(state, cache, *b, wanted);
  });
  return found;
}

/// A block that was freed on the stream and may be used there at once, or null.
template <typename Backend>
PAGESIFT_ALWAYS_INLINE void* hit(pool_state<Backend>& state, remembered_stream<Backend>& known,
                                 const wanted_block& wanted) noexcept {
  const class_index waiting = waiting_for.of[wanted.index];
  {
    const used_cache used{state, known};
    stream_cache& cache = used.get();
    if (cache.stream == known.id) {
      block* b = cache.pop(waiting);
      if (b == nullptr && has_own_run(waiting)) {
        b = cache.pop_near(waiting, wanted.bytes,
                           state.idle_abounds.load(std::memory_order_relaxed));
      }
      if (b != nullptr) {
        return hand_out(state, cache, *b, wanted);
      }
    }
  }
  return hit_beside(state, known, wanted, waiting);
}

/// A hit for a caller that knows the stream's id, or null. Precondition: the gate was open to
/// requests before the stream was asked.
template <typename Backend>
PAGESIFT_ALWAYS_INLINE void* try_hit(pool_state<Backend>& state,
                                     typename Backend::stream_type stream, stream_id id,
                                     const wanted_block& wanted) noexcept {
  remembered_stream<Backend>* known = last_streams<Backend>::find(state.number, stream);
  return known != nullptr && known->id == id ? hit(state, *known, wanted) : nullptr;
}

/// Claims a block from its user; null, and counted as a rejected free, where nobody has it.
template <typename Backend>
PAGESIFT_ALWAYS_INLINE block* claim(pool_state<Backend>& state, block* b) noexcept {
  const bool trusted = state.options.checks == checks::trusted;
  if (b != nullptr && (trusted ? b->claim_trusted() : b->claim())) {
    return b;
  }
  if (b != nullptr && b->claim(block_state::shared)) {
    return b;
  }
  state.counters.rejected_frees.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

/// The same for the block at `p`. Precondition: the caller has locked a cache or the pool's mutex,
/// so that no run is given back to the page heap meanwhile.
template <typename Backend>
PAGESIFT_ALWAYS_INLINE block* claim_at(pool_state<Backend>& state, const void* p) noexcept {
  return claim(state, state.memory.heap.find(p));
}

/// A block that was claimed from its user and is yet to be placed on the stream it was freed on.
struct unplaced_block {
  block* claimed = nullptr;  ///< or null: there is nothing left to do
  bool wants_seal = false;   ///< its placing is to be followed by a seal of the stream
};

/// Frees the block at `p` on the stream by whose handle `known` was found, if it was handed out on
/// that stream: then the handle named it, and still does while the stream lives. Should the handle
/// name another one by now, the block is out of everybody's reach until a fence; so that this does
/// not happen for ever, a free that wants a seal, which asks who the stream is in any case, asks
/// before the block is placed.
template <typename Backend>
PAGESIFT_ALWAYS_INLINE unplaced_block free_known(pool_state<Backend>& state,
                                                 remembered_stream<Backend>& known,
                                                 const void* p) noexcept {
  const used_cache used{state, known};
  stream_cache& cache = used.get();
  block* const last = cache.last_handed_out(p);
  block* const b = last != nullptr ? claim(state, last) : claim_at(state, p);
  if (b == nullptr || cache.stream != known.id || b->use.stream != known.id) {
    return {b, false};
  }
  if (wants_seal(state, *known.record, cache, b->run->block_bytes)) {
    return {b, true};
  }
  take_back(state, cache, *b, known.record->timeline.current());
  return {};
}

}  // namespace pagesift
