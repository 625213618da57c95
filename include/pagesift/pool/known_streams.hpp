// Finds the record of a stream that a call named, and lets the calling thread remember it.
#pragma once

#include <pagesift/front/last_streams.hpp>
#include <pagesift/pool/state.hpp>

namespace pagesift {

/// The record of a stream that a call named, after making room for it. \throws std::bad_alloc
template <typename Backend>
stream_record<Backend>& record_of(pool_lock& lock, pool_state<Backend>& state, stream_id id) {
  if (state.memory.streams.crowded()) {
    (void)state.memory.poll();
    lock.freeze();
    state.memory.sweep();
    lock.thaw();
  }
  return state.memory.streams.of(id);
}

/// Whether the calling thread remembers that the handle names the record's stream.
template <typename Backend>
bool remembers(const pool_state<Backend>& state, typename Backend::stream_type stream,
               const stream_record<Backend>& r) noexcept {
  const remembered_stream<Backend>* known = last_streams<Backend>::find(state.number, stream);
  return known != nullptr && known->record == &r && known->id == r.id;
}

/// Makes the calling thread remember which stream the handle names.
template <typename Backend>
remembered_stream<Backend>& remember(const pool_state<Backend>& state,
                                     typename Backend::stream_type stream,
                                     stream_record<Backend>& r) noexcept {
  return last_streams<Backend>::remember({state.number, stream, r.id, &r, &r.first_cache(), 0});
}

}  // namespace pagesift
