// The way of a request on a capturing stream.
#pragma once

#include <pagesift/core/error.hpp>
#include <pagesift/pool/capture_requests.hpp>
#include <pagesift/pool/serve.hpp>

#include <algorithm>

namespace pagesift {

/// A block for a capture from the pool: one whose uses the host has seen complete, since the graph
/// may run at any time after its end, on any stream. No stream is made to wait.
/// Preconditions: every cache is locked, the arena is pinned and expects the block.
/// \throws out_of_memory, backend_error, std::bad_alloc
template <typename Backend>
block& quiet_block(pool_lock& lock, pool_state<Backend>& state, const request& wanted) {
  stream_record<Backend>& taker = state.memory.streams.quiet();
  if (block* b = state.memory.own_block(taker, wanted.waiting)) {
    return *b;
  }
  errand<Backend> e{taker, wanted, std::nullopt};
  block& b = serve(lock, state, e);
  if (e.grew) {
    state.counters.missed(wanted.index);
  }
  state.note_plenty();
  return b;
}

/// A parked block of the arena that serves the request at that place of the capture, taken out; or
/// null. The graph is looked into without the mutex. Precondition: the arena is pinned.
/// \throws std::bad_alloc
template <typename Backend>
block* reuse_in_capture(pool_lock& lock, pool_state<Backend>& state, capture_arena<Backend>& arena,
                        const request& wanted,
                        const capture_position<typename Backend::node_type>& here) {
  const auto candidates = arena.candidates(wanted);
  if (candidates.empty()) {
    return nullptr;
  }
  const auto ordered = unlocked(lock, [&] {
    capture_ancestry<Backend> before{state.backend, here};
    return std::find_if(candidates.begin(), candidates.end(),
                        [&](const auto& c) { return before.covers(c.freed_at); });
  });
  return ordered != candidates.end() && arena.take(*ordered) ? ordered->parked : nullptr;
}

/// Serves a request on a stream that was seen capturing: with what was freed earlier in the same
/// capture, else from the pool. The block belongs to the capture's arena from then on. At the end
/// every cache is locked.
/// \throws capture_error where the capture was invalidated, out_of_memory, backend_error,
/// std::bad_alloc
template <typename Backend>
block& serve_captured(pool_lock& lock, pool_state<Backend>& state,
                      typename Backend::stream_type stream, const stream_state& seen,
                      const request& wanted) {
  reap_arenas(lock, state);
  const auto capture = look_at_capture(lock, state, stream);
  require_ok(state.backend, capture.result);
  if (!capture.active) {
    throw capture_error{wanted.bytes, "whose capture was invalidated"};
  }
  state.captures.belongs_to(stream, seen, capture.capture);
  capture_arena<Backend>& arena = arena_of(lock, state, capture);
  const pinned pin{arena};
  block* b = reuse_in_capture(lock, state, arena, wanted, capture.position);
  lock.freeze();
  if (b == nullptr) {
    arena.expect_block();
    try {
      b = &quiet_block(lock, state, wanted);
    } catch (...) {
      arena.expect_block_no_more();
      throw;
    }
    arena.add(*b);
  }
  b->use = {arena.id, 0};
  return *b;
}

}  // namespace pagesift
