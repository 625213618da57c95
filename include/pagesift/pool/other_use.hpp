// How a pool deals with blocks that were used on streams other than the one they are freed on.
#pragma once

#include <pagesift/pool/ordering.hpp>
#include <pagesift/pool/paged_block.hpp>

namespace pagesift {

/// Records an event on `stream`, whose id is `id`, and has the block wait for it after its free.
/// Leaves things as they were on failure. Precondition: the block is in a user's hands.
/// \throws std::bad_alloc
template <typename Backend>
status mark_use(pool_lock& lock, pool_state<Backend>& state, block& b, stream_id id,
                typename Backend::stream_type stream) {
  event_pool<Backend>& events = state.memory.events;
  typename other_uses<Backend>::room room{state.memory.elsewhere, b};
  status result = provide_event(lock, state);
  if (!result.ok()) {
    return result;
  }
  const event_slot slot = events.take();
  const auto event = events.event(slot);
  result = unlocked(lock, [&] { return state.backend.record(event, stream); });
  if (!result.ok()) {
    events.release(slot);
    return result;
  }
  ++state.counters.events_recorded;
  room.fill({id, slot}, events);
  state.memory.elsewhere.drop_complete(b, state.backend, events);
  if (!names_arena(b.use.stream)) {   // what a graph may name stays known as such
    b.use.stream = unordered_stream;  // no free takes it for the stream it was handed out on
  }
  b.set(block_state::shared);
  return result;
}

/// Takes a block that was freed on the taker's stream and waits for others, and makes the stream
/// wait for those. \throws backend_error; the block then waits as before
template <typename Backend>
block* take_behind_other_uses(pool_lock& lock, pool_state<Backend>& state, errand<Backend>& e) {
  other_uses<Backend>& elsewhere = state.memory.elsewhere;
  block* const b = e.stream ? elsewhere.begin_taking(e.taker, e.wanted.waiting) : nullptr;
  if (b == nullptr) {
    return nullptr;
  }
  for (const auto& mark : elsewhere.marks_of(*b)) {
    const auto event = state.memory.events.event(mark.slot);
    const status result = unlocked(lock, [&] { return state.backend.wait(*e.stream, event); });
    if (!result.ok()) {
      elsewhere.give_up_taking(*b);
      require_ok(state.backend, result);
    }
    ++state.counters.stream_waits;
  }
  elsewhere.end_taking(*b, state.memory.events);
  return b;
}

/// Makes the host wait for a use of a block that waits for one, and lets what need not wait any
/// more wait on the stream it was freed on. Precondition: some block waits.
template <typename Backend>
status await_other_use(pool_lock& lock, pool_state<Backend>& state) noexcept {
  event_pool<Backend>& events = state.memory.events;
  const event_slot slot = state.memory.elsewhere.first_awaited().slot;
  const auto event = events.event(slot);
  events.retain(slot);
  const status result = unlocked(lock, [&] { return state.backend.synchronize(event); });
  events.release(slot);
  return result.ok() ? poll(lock, state) : result;
}

}  // namespace pagesift
