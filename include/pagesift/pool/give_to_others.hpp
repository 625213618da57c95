// How pools that share a device's memory give it back to each other.
#pragma once

#include <pagesift/pool/capture_requests.hpp>
#include <pagesift/pool/growth.hpp>
#include <pagesift/pool/ordering.hpp>
#include <pagesift/pool/pool_life.hpp>
#include <pagesift/pool/shortage_helpers.hpp>

#include <cstddef>

namespace pagesift {

/// Releases idle granules that are complete, oldest first, until `bytes` bytes are released or none
/// is left. Returns the bytes released. Failures are for the pool that asks to find.
template <typename Backend>
std::size_t release_complete(pool_lock& lock, pool_state<Backend>& state,
                             std::size_t bytes) noexcept {
  state.memory.merge_complete(quiet_stream);
  std::size_t given = 0;
  for (bool released = true; released && given < bytes;) {
    const std::size_t before = state.counters.held();
    (void)release_oldest(lock, state, bytes - given, released);
    const std::size_t now = state.counters.held();  // others may have taken some meanwhile
    given += before > now ? before - now : 0;
  }
  return given;
}

/// Gives idle memory back to the backend for another pool's sake: first what is known complete,
/// then what a fence makes so.
template <typename Backend>
std::size_t give_to_others(pool_state<Backend>& state, std::size_t bytes) noexcept {
  if (is_out_of_reach(state)) {
    return 0;
  }
  pool_lock lock{state.caches};
  lock.freeze();
  reap_arenas(lock, state);
  (void)poll(lock, state);
  std::size_t given = release_complete(lock, state, bytes);
  if (given < bytes && fence_may_help(state) && fence(lock, state).ok()) {
    reap_after_fence(lock, state);
    given += release_complete(lock, state, bytes - given);
  }
  return given;
}

/// Asks whoever else has memory of the same place, without a lock. Returns whether some was given.
/// \throws std::bad_alloc, what a giver of the user's throws
template <typename Backend>
bool ask_others(pool_lock& lock, pool_state<Backend>& state, std::size_t bytes) {
  const auto place = place_of(state.backend);
  return place && unlocked(lock, [&] {
           return shortage_helpers::get().ask(*place, bytes, state.gives.helper()) != 0;
         });
}

}  // namespace pagesift
