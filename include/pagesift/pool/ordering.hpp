// How memory becomes fit for another stream: seals, waits, fences.
#pragma once

#include <pagesift/pool/state.hpp>

#include <cstddef>
#include <new>

namespace pagesift {

/// Sees to it that an event is to spare. Other threads may take it while the lock is given up: then
/// another is made. \throws std::bad_alloc
template <typename Backend>
status provide_event(pool_lock& lock, pool_state<Backend>& state) {
  event_pool<Backend>& events = state.memory.events;
  while (!events.has_spare()) {
    typename Backend::event_type event{};
    const status result = unlocked(lock, [&] { return state.backend.create_event(event); });
    if (!result.ok()) {
      return result;
    }
    try {
      events.add(event);
    } catch (const std::bad_alloc&) {
      (void)unlocked(lock, [&] { return state.backend.destroy_event(event); });
      throw;
    }
  }
  return {};
}

/// Records an event on `stream` that covers all frees on it so far. Between closing the epoch and
/// publishing the event, frees of other threads count for the next epoch, and the closed one is not
/// sealed yet: nobody takes a block by an event that is not recorded.
/// Preconditions: `stream` is the stream of `owner`, alive and not capturing. Leaves things as they
/// were on failure. \throws std::bad_alloc
template <typename Backend>
status seal(pool_lock& lock, pool_state<Backend>& state, stream_record<Backend>& owner,
            typename Backend::stream_type stream) {
  event_pool<Backend>& events = state.memory.events;
  status result = provide_event(lock, state);
  if (!result.ok()) {
    return result;
  }
  const event_slot slot = events.take();
  const auto event = events.event(slot);
  const epoch closed = owner.timeline.close(state.memory.streams.next_epoch());
  owner.asks_answered.store(state.asks.load(std::memory_order_relaxed), std::memory_order_relaxed);
  const pinned pin{owner};
  result = unlocked(lock, [&] { return state.backend.record(event, stream); });
  if (!result.ok()) {
    owner.timeline.reopen();
    events.release(slot);
    return result;
  }
  ++state.counters.events_recorded;
  owner.timeline.publish(closed, slot, events);
  return result;
}

/// Whether a free of `bytes` into `cache` should be followed by a seal of its stream, `owner`.
/// Needs no mutex. Precondition: `cache` is locked.
template <typename Backend>
bool wants_seal(const pool_state<Backend>& state, const stream_record<Backend>& owner,
                stream_cache& cache, std::size_t bytes) noexcept {
  const auto& streams = state.memory.streams;
  if (!streams.several_seen()) {
    return false;
  }
  const bool asked = owner.asks_answered.load(std::memory_order_relaxed) !=
                     state.asks.load(std::memory_order_relaxed);
  if (asked || streams.many() || owner.timeline.owes_seal()) {
    cache.sealed_on_request();
    return true;
  }
  if (cache.seal_is_due(owner.timeline.current(), bytes, state.options.seal_bytes)) {
    cache.sealed_unasked();
    return true;
  }
  return false;
}

/// Makes a backend call with the event of one of `owner`'s seals, without the lock. Neither is
/// given up meanwhile.
template <typename Backend, typename Call>
status with_event(pool_lock& lock, pool_state<Backend>& state, stream_record<Backend>& owner,
                  event_slot slot, Call&& call) noexcept {
  event_pool<Backend>& events = state.memory.events;
  const pinned pin{owner};
  events.retain(slot);
  const auto event = events.event(slot);
  const status result = unlocked(lock, [&] { return call(event); });
  events.release(slot);
  return result;
}

/// Asks after every outstanding seal, while hits go on.
template <typename Backend>
status poll(pool_lock& lock, pool_state<Backend>& state) noexcept {
  if (!state.memory.has_pending()) {
    return {};
  }
  const thawed hits_go_on{lock};
  return state.memory.poll();
}

/// Makes the host wait for a seal of `owner`.
template <typename Backend>
status await(pool_lock& lock, pool_state<Backend>& state, stream_record<Backend>& owner,
             typename stream_timeline<Backend>::seal seal) noexcept {
  const status result = with_event(lock, state, owner, seal.slot,
                                   [&](auto event) { return state.backend.synchronize(event); });
  if (result.ok()) {
    owner.timeline.complete_up_to(seal.covered, state.memory.events);
    state.memory.heap.promote(owner.id, owner.timeline.complete());
  }
  return result;
}

/// Makes the host wait for all work of the context: everything freed before is complete then.
template <typename Backend>
status fence(pool_lock& lock, pool_state<Backend>& state) noexcept {
  stream_table<Backend>& streams = state.memory.streams;
  const epoch before = streams.next_epoch();
  streams.for_each_incomplete(
      [&](stream_record<Backend>& r) { r.timeline.close(streams.next_epoch()); });
  const status result = unlocked(lock, [&] { return state.backend.fence(); });
  if (!result.ok()) {
    streams.for_each_incomplete([](stream_record<Backend>& r) { r.timeline.reopen(); });
    return result;
  }
  ++state.counters.fences;
  streams.for_each_incomplete([&](stream_record<Backend>& r) {
    r.timeline.complete_up_to(before, state.memory.events);
    state.memory.heap.promote(r.id, r.timeline.complete());
  });
  if (state.memory.elsewhere.waiting() != 0) {
    const thawed hits_go_on{lock};
    state.memory.elsewhere.complete_up_to(before, state.memory.events,
                                          [&](stream_record<Backend>&, block& b, epoch) {
                                            state.memory.let_wait(streams.quiet(), b, 0);
                                          });
  }
  return result;
}

/// The same where the backend has the means for it now; returns whether it had.
/// \throws backend_error
template <typename Backend>
bool fence_if_possible(pool_lock& lock, pool_state<Backend>& state) {
  const status result = fence(lock, state);
  if (!result.shortage()) {
    require_ok(state.backend, result);
  }
  return result.ok();
}

/// Waits, with a fence, for idle memory that may still be in use by submitted work.
/// \throws backend_error
template <typename Backend>
void complete_idle_memory(pool_lock& lock, pool_state<Backend>& state) {
  require_ok(state.backend, poll(lock, state));
  if (state.memory.has_incomplete()) {
    (void)fence_if_possible(lock, state);
  }
}

}  // namespace pagesift
