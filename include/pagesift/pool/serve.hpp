// The way of a request that the stream's own cache could not serve.
#pragma once

#include <pagesift/core/error.hpp>
#include <pagesift/pool/capture_requests.hpp>
#include <pagesift/pool/give_to_others.hpp>
#include <pagesift/pool/other_use.hpp>
#include <pagesift/pool/paged_block.hpp>
#include <pagesift/pool/user_question.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>

namespace pagesift {

/// What the pool may hold: its limit in whole pages, as bytes.
[[nodiscard]] inline std::size_t limit_in_pages(const pool_options& options) noexcept {
  return options.limit_bytes == no_limit ? no_limit : options.limit_bytes / page_bytes * page_bytes;
}

/// \throws out_of_memory, always
template <typename Backend>
[[noreturn]] void throw_out_of_memory(pool_lock& lock, pool_state<Backend>& state,
                                      std::size_t requested) {
  const memory_info info = unlocked(lock, [&] { return state.backend.memory(); });
  throw out_of_memory{
      Backend::memory_name,
      {requested, state.counters.held(), state.counters.in_use(), state.counters.idle(),
       limit_in_pages(state.options), info.free_bytes, info.total_bytes, state.memory.largest()}};
}

/// Splits off what large blocks in use have beyond what was asked for; it is free when the work
/// submitted so far to the stream that got the block is complete. Returns whether there was any.
/// \throws std::bad_alloc; what was split off until then stays so
template <typename Backend>
bool free_slack(pool_state<Backend>& state) {
  idle_memory<Backend>& memory = state.memory;
  bool found = false;
  memory.heap.for_each_cut_run([&](page_run& run) {
    const block& b = run.blocks[0];
    const std::size_t needed = pages_for(b.needed_bytes);
    if (run.capacity != 1 || !b.is(block_state::in_use) || needed >= run.pages ||
        names_arena(b.use.stream)) {  // a graph may name all of it
      return;
    }
    const std::size_t before = run.block_bytes;
    memory.heap.shorten(run, needed, memory.last_use_now(b.use.stream));
    const std::size_t given_up = before - run.block_bytes;
    memory.streams.quiet().first_cache().shortened(b.requested, given_up);
    state.caches.exact.taken_back(given_up);
    found = true;
  });
  return found;
}

/// Takes a block of another stream whose last use is not complete, and makes the taker's stream
/// wait for it. What is left of that stream's blocks stays behind its seal.
/// \throws backend_error; the block then waits where it was
template <typename Backend>
block* take_behind_wait(pool_lock& lock, pool_state<Backend>& state, errand<Backend>& e) {
  const auto pending = e.stream ? state.memory.take_pending(e.wanted) : std::nullopt;
  if (!pending) {
    return nullptr;
  }
  const status result =
      with_event(lock, state, *pending->owner, pending->seal.slot,
                 [&](auto event) { return state.backend.wait(*e.stream, event); });
  if (!result.ok()) {
    state.memory.put_back(*pending->owner, *pending->taken);
  }
  require_ok(state.backend, result);
  ++state.counters.stream_waits;
  return pending->taken;
}

/// Serves the request from idle memory that is complete or the taker's own, in exactly the pages it
/// needs. \throws std::bad_alloc
template <typename Backend>
block* idle_block(pool_state<Backend>& state, errand<Backend>& e) {
  idle_memory<Backend>& memory = state.memory;
  memory.merge_complete(e.taker.id);
  if (block* b = memory.own_block(e.taker, e.wanted.waiting)) {
    return b;
  }
  if (block* b = memory.complete_block(e.wanted.waiting)) {
    return b;
  }
  if (block* b = memory.fresh_block(e.taker, e.wanted, e.wanted.tight)) {
    return b;
  }
  return memory.larger_block(e.taker, e.wanted);
}

/// Serves the request from what is complete or the taker's own: as it is, with the slack of blocks
/// in use, sifted together, or in new memory for which idle memory is released.
/// \throws backend_error, std::bad_alloc
template <typename Backend>
block* reclaim(pool_lock& lock, pool_state<Backend>& state, errand<Backend>& e) {
  const std::size_t pages = e.wanted.tight.pages;
  // Each time round less is held: what a failed growth brings and a release takes again is no gain.
  std::size_t held_before = no_limit;
  for (bool released = true; released && state.counters.held() < held_before;) {
    held_before = state.counters.held();
    if (block* b = idle_block(state, e)) {
      return b;
    }
    if (free_slack(state)) {
      if (block* b = idle_block(state, e)) {
        return b;
      }
    }
    bool created = false;
    const status grown = grow_tight(lock, state, e.taker.id, pages, created);
    if (block* b = block_of_new_run(state, e, e.wanted.tight, grown, created)) {
      return b;
    }
    if (state.maps) {  // released memory could only come back: it was sifted as it is
      return nullptr;
    }
    require_ok(state.backend, release_oldest(lock, state, pages * page_bytes, released));
  }
  return nullptr;
}

/// One walk through the ways out of a shortage, the cheapest first.
/// \throws backend_error, std::bad_alloc
template <typename Backend>
block* search_everything(pool_lock& lock, pool_state<Backend>& state, errand<Backend>& e) {
  reap_arenas(lock, state);
  if (block* b = reclaim(lock, state, e)) {
    return b;
  }
  if (e.stream && state.memory.has_incomplete(e.taker)) {
    const status sealed = seal(lock, state, e.taker, *e.stream);
    if (!sealed.shortage()) {  // no memory for an event: a fence needs none
      require_ok(state.backend, sealed);
    }
  }
  while (stream_record<Backend>* r = state.memory.oldest_pending()) {
    require_ok(state.backend, await(lock, state, *r, r->timeline.oldest_pending()));
    if (block* b = reclaim(lock, state, e)) {
      return b;
    }
  }
  for (std::size_t held = state.memory.elsewhere.waiting();
       held != 0 && state.memory.elsewhere.waiting() != 0; --held) {
    require_ok(state.backend, await_other_use(lock, state));
    if (block* b = reclaim(lock, state, e)) {
      return b;
    }
  }
  if (!fence_may_help(state) || !fence_if_possible(lock, state)) {
    return nullptr;
  }
  reap_after_fence(lock, state);  // graphs that were gone but for a launch
  return reclaim(lock, state, e);
}

/// Whether memory has come back or come in since `arrivals_before`, graphs' included, or was on its
/// way; waits for what is.
template <typename Backend>
bool others_made_room(pool_lock& lock, pool_state<Backend>& state, std::uint64_t arrivals_before) {
  const bool moving = state.ranges_in_motion != 0;
  state.range_settled.wait(lock, [&] { return state.ranges_in_motion == 0; });
  return moving || state.arrivals() != arrivals_before || graphs_have_ended(state);
}

/// Whether the pool could serve the request if the device had more memory: its limit leaves room.
template <typename Backend>
bool others_would_help(const pool_state<Backend>& state, const errand<Backend>& e) noexcept {
  const std::size_t own = room(state);
  return own >= page_bytes &&
         e.wanted.tight.pages <= (own / page_bytes + state.counters.idle() / page_bytes);
}

/// Whether the backend has so much free memory now: others may have given it back since it was
/// found short, or may have been about to when they were asked.
template <typename Backend>
bool backend_has_room(pool_lock& lock, const pool_state<Backend>& state, std::size_t bytes) {
  return unlocked(lock, [&] { return state.backend.memory(); }).free_bytes >= bytes;
}

/// Asks the user for memory, without the lock; not for what is requested by somebody who is being
/// asked. Returns whether there may be some now.
template <typename Backend>
bool ask_user(pool_lock& lock, pool_state<Backend>& state, std::size_t bytes) {
  if (!state.options.on_shortage || shortage_helpers::is_being_asked() ||
      user_question::is_put_to_user_of(&state)) {
    return false;
  }
  return unlocked(lock, [&] {
    const user_question asking{&state};
    return state.options.on_shortage(bytes);
  });
}

/// \throws out_of_memory when every way has been tried, backend_error, std::bad_alloc
template <typename Backend>
block& serve_in_shortage(pool_lock& lock, pool_state<Backend>& state, errand<Backend>& e) {
  constexpr int max_rounds = 64;  // a bound on patience with threads that keep taking what is freed
  int pleas = 0;
  int user_calls = 0;
  for (int round = 0; round < max_rounds; ++round) {
    const std::uint64_t arrivals_before = state.arrivals();
    if (block* b = search_everything(lock, state, e)) {
      return *b;
    }
    if (others_made_room(lock, state, arrivals_before)) {
      continue;
    }
    const std::size_t bytes = e.wanted.tight.pages * page_bytes;
    if (others_would_help(state, e) && pleas++ < max_shortage_calls &&
        (ask_others(lock, state, bytes) || backend_has_room(lock, state, bytes))) {
      continue;
    }
    if (user_calls++ < max_shortage_calls && ask_user(lock, state, e.wanted.bytes)) {
      continue;
    }
    if (!others_made_room(lock, state, arrivals_before)) {  // meanwhile
      break;
    }
  }
  throw_out_of_memory(lock, state, e.wanted.bytes);
}

/// Serves a request that the taker's cache could not. The order of preference keeps independent
/// streams independent while memory is free.
/// Preconditions: the taker is pinned, every cache is locked.
/// \throws out_of_memory, backend_error, std::bad_alloc
template <typename Backend>
block& serve(pool_lock& lock, pool_state<Backend>& state, errand<Backend>& e) {
  idle_memory<Backend>& memory = state.memory;
  if (e.wanted.tight.pages > most_pages(state)) {
    throw_out_of_memory(lock, state, e.wanted.bytes);
  }
  if (block* b = memory.near_block(e.taker, e.wanted,
                                   state.idle_abounds.load(std::memory_order_relaxed))) {
    return *b;
  }
  if (block* b = memory.complete_block(e.wanted.waiting)) {
    return *b;
  }
  state.asks.fetch_add(memory.streams.several_seen() ? 1 : 0, std::memory_order_relaxed);
  require_ok(state.backend, poll(lock, state));
  if (block* b = memory.own_block(e.taker, e.wanted.waiting)) {  // freed while hits went on
    return *b;
  }
  if (block* b = memory.complete_block(e.wanted.waiting)) {
    return *b;
  }
  if (block* b = block_of_pages(lock, state, e)) {
    return *b;
  }
  if (block* b = memory.complete_block(e.wanted.waiting)) {  // growing gave up the lock
    return *b;
  }
  if (block* b = take_behind_wait(lock, state, e)) {
    return *b;
  }
  if (block* b = take_behind_other_uses(lock, state, e)) {
    return *b;
  }
  return serve_in_shortage(lock, state, e);
}

}  // namespace pagesift
