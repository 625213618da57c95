// The way of a request that was no hit.
#pragma once

#include <pagesift/core/inlining.hpp>
#include <pagesift/pool/hit_path.hpp>
#include <pagesift/pool/known_streams.hpp>
#include <pagesift/pool/serve.hpp>
#include <pagesift/pool/serve_captured.hpp>

#include <cstddef>
#include <optional>

namespace pagesift {

/// Hands out the taker's newest block of the class, or searches further.
/// \throws out_of_memory, backend_error, std::bad_alloc
template <typename Backend>
void* serve_slowly(pool_lock& lock, pool_state<Backend>& state, stream_record<Backend>& taker,
                   const request& wanted, std::optional<typename Backend::stream_type> stream) {
  lock.freeze();
  block* b = state.memory.own_block(taker, wanted.waiting);
  if (b == nullptr) {
    const pinned pin{taker};
    errand<Backend> e{taker, wanted, stream};
    b = &serve(lock, state, e);
    if (e.grew) {
      state.counters.missed(wanted.index);
    }
    state.note_plenty();
  }
  b->use.stream = taker.id;
  return hand_out(state, taker.first_cache(), *b, {wanted.bytes, wanted.index});
}

/// Serves a request that was no hit. \throws as `basic_pool::allocate`
template <typename Backend>
PAGESIFT_RARELY_CALLED void* allocate_slowly(pool_state<Backend>& state,
                                             typename Backend::stream_type stream,
                                             const wanted_block& wanted, std::size_t alignment) {
  const stream_state seen = state.backend.inspect(stream);
  require_ok(state.backend, seen.result);
  const request r = make_request(wanted.bytes, alignment);
  pool_lock lock{state.caches};
  state.captures.see(stream, seen);
  if constexpr (is_capturing_backend_v<Backend>) {
    if (seen.capturing) {
      block& b = serve_captured(lock, state, stream, seen, r);
      return hand_out(state, state.memory.streams.quiet().first_cache(), b, wanted);
    }
  }
  reap_arenas(lock, state);
  stream_record<Backend>* taker = &record_of(lock, state, seen.id);
  if (!remembers(state, stream, *taker)) {
    // It may be a hit all the same, which stops no other stream.
    remembered_stream<Backend>& known = remember(state, stream, *taker);
    if (void* p = unlocked(lock, [&] { return hit(state, known, wanted); })) {
      return p;
    }
    taker = &record_of(lock, state, seen.id);
  }
  return serve_slowly<Backend>(lock, state, *taker, r, stream);
}

}  // namespace pagesift
