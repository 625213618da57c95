// What keeps a pool in shape: `trim`, `end_batch` and `retire` of basic_pool, which says what they
// do. Precondition of each: the backend is within reach. They throw backend_error, std::bad_alloc.
#pragma once

#include <pagesift/core/error.hpp>
#include <pagesift/pool/capture_requests.hpp>
#include <pagesift/pool/growth.hpp>
#include <pagesift/pool/known_streams.hpp>
#include <pagesift/pool/ordering.hpp>

#include <cstddef>
#include <cstdint>

namespace pagesift {

template <typename Backend>
void trim(pool_state<Backend>& state, std::size_t keep_bytes) {
  pool_lock lock{state.caches};
  lock.freeze();
  reap_arenas(lock, state);
  if (state.counters.idle() <= keep_bytes) {
    return;
  }
  complete_idle_memory(lock, state);
  reap_arenas(lock, state);  // of graphs whose last launch it waited for
  state.memory.merge_complete(quiet_stream);
  for (bool released = true; released && state.counters.idle() > keep_bytes;) {
    const std::size_t excess = state.counters.idle() - keep_bytes;
    require_ok(state.backend, release_oldest(lock, state, excess, released));
  }
}

template <typename Backend>
void end_batch(pool_state<Backend>& state) {
  pool_lock lock{state.caches};
  lock.freeze();
  reap_arenas(lock, state);
  const std::uint64_t batch = state.memory.heap.batch();
  state.memory.heap.next_batch();
  state.batch.end(state.caches);
  const auto untouched = [&](class_index waiting) { return !state.batch.touched(waiting); };
  if (state.memory.has_idle(untouched) || state.memory.heap.has_owned_run(batch)) {
    complete_idle_memory(lock, state);
    state.memory.merge_classes(untouched);
  }
  for (bool released = true; released;) {
    const std::size_t all = state.counters.held();
    require_ok(state.backend, release_oldest(lock, state, all, released, batch));
  }
}

template <typename Backend>
void retire(pool_state<Backend>& state, typename Backend::stream_type stream) {
  const stream_state seen = state.backend.inspect(stream);
  require_ok(state.backend, seen.result);
  pool_lock lock{state.caches};
  state.captures.see(stream, seen);
  if (seen.capturing) {
    return;
  }
  stream_record<Backend>& owner = record_of(lock, state, seen.id);
  lock.freeze();
  if (state.memory.wants_last_event(owner)) {
    require_ok(state.backend, seal(lock, state, owner, stream));
  }
}

}  // namespace pagesift
