// The way of a free: who the block's stream is, and where the block waits.
#pragma once

#include <pagesift/core/inlining.hpp>
#include <pagesift/pool/capture_requests.hpp>
#include <pagesift/pool/hit_path.hpp>
#include <pagesift/pool/known_streams.hpp>
#include <pagesift/pool/ordering.hpp>

#include <new>

namespace pagesift {

/// Whether the gate is closed by captures alone, and the stream takes no part in one.
template <typename Backend>
PAGESIFT_RARELY_CALLED bool may_free_beside_captures(
    pool_state<Backend>& state, typename Backend::stream_type stream) noexcept {
  if (!state.gate.open_to_requests() || !state.backend.is_not_capturing(stream)) {
    return false;
  }
  see_not_capturing(state, stream);
  return true;
}

/// Where a block freed on `stream` waits. A stream that cannot be named, or host memory too short
/// to remember it, costs the block its order, never the pool the block.
template <typename Backend>
stream_record<Backend>& record_for_free(pool_lock& lock, pool_state<Backend>& state,
                                        typename Backend::stream_type stream,
                                        const stream_state& seen) noexcept {
  try {
    if (seen.result.ok()) {
      state.captures.see(stream, seen);
      return seen.capturing ? state.memory.streams.unordered() : record_of(lock, state, seen.id);
    }
  } catch (const std::bad_alloc&) {
  }
  return state.memory.streams.unordered();
}

/// Lets a claimed block wait on `owner`. \returns whether that should be followed by a seal.
/// Precondition: no cache is locked by the caller.
template <typename Backend>
bool put(pool_state<Backend>& state, stream_record<Backend>& owner,
         const unplaced_block& b) noexcept {
  stream_cache& cache = owner.first_cache();
  const cache_guard guard{cache.lock};
  idle_memory<Backend>& memory = state.memory;
  const bool named = owner.id != quiet_stream && owner.id != unordered_stream;
  const bool wanted =
      named && (b.wants_seal || wants_seal(state, owner, cache, b.claimed->run->block_bytes));
  if (memory.elsewhere.hold_back(*b.claimed, owner, memory.streams.next_epoch(), memory.events)) {
    count_back(state, cache, *b.claimed);
  } else {
    take_back(state, cache, *b.claimed, owner.id == quiet_stream ? 0 : owner.timeline.current());
  }
  return wanted;
}

/// Finds out on which stream a claimed block is freed, and lets it wait there. An event says
/// something about a stream only if it is recorded on that very one, so seals are made here too.
template <typename Backend>
PAGESIFT_RARELY_CALLED void place(pool_state<Backend>& state, const unplaced_block& b,
                                  typename Backend::stream_type stream) noexcept {
  const stream_state seen = state.backend.inspect(stream);
  pool_lock lock{state.caches};
  if (park_if_captured(lock, state, *b.claimed, stream, seen)) {
    return;
  }
  stream_record<Backend>& owner = record_for_free(lock, state, stream, seen);
  const bool wants_seal = put(state, owner, b);
  if (owner.id != unordered_stream && !remembers(state, stream, owner)) {
    remember(state, stream, owner);
  }
  if (wants_seal) {
    try {
      (void)seal(lock, state, owner, stream);  // not sealed now: a later free will try again
    } catch (const std::bad_alloc&) {
    }
  }
}

/// Frees on a stream that is known by its handle.
template <typename Backend>
PAGESIFT_ALWAYS_INLINE void free_on(pool_state<Backend>& state, remembered_stream<Backend>& known,
                                    const void* p, typename Backend::stream_type stream) noexcept {
  const unplaced_block rest = free_known(state, known, p);
  if (rest.claimed != nullptr) {
    place(state, rest, stream);
  }
}

/// Frees on a stream that the calling thread does not remember.
template <typename Backend>
PAGESIFT_RARELY_CALLED void free_slowly(pool_state<Backend>& state, const void* p,
                                        typename Backend::stream_type stream) noexcept {
  block* b = nullptr;
  {
    const pool_lock lock{state.caches};
    b = claim_at(state, p);
  }
  if (b != nullptr) {
    place(state, {b, false}, stream);
  }
}

/// Frees a block whose last use may have been on any stream.
template <typename Backend>
void free_unordered(pool_state<Backend>& state, const void* p) noexcept {
  pool_lock lock{state.caches};
  if (block* b = claim_at(state, p)) {
    const bool complete = fence(lock, state).ok();
    stream_table<Backend>& streams = state.memory.streams;
    if (keep_for_graph(lock, state, *b, complete ? last_use{} : streams.unordered_now())) {
      return;
    }
    (void)put(state, complete ? streams.quiet() : streams.unordered(), {b, false});
  }
}

}  // namespace pagesift
