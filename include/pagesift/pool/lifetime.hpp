// What a pool does first and last: it takes the memory it starts with, and gives all of it back.
#pragma once

#include <pagesift/core/bytes.hpp>
#include <pagesift/core/error.hpp>
#include <pagesift/pool/capture_requests.hpp>
#include <pagesift/pool/growth.hpp>
#include <pagesift/pool/serve.hpp>

#include <cstddef>

namespace pagesift {

/// Takes the memory a pool starts with; what came of it goes back if it is not all to be had.
/// \throws out_of_memory, backend_error, std::bad_alloc
template <typename Backend>
void take_initial_bytes(pool_lock& lock, pool_state<Backend>& state) {
  const std::size_t wanted = state.options.initial_bytes;
  const std::size_t pages = divide_round_up(wanted, page_bytes);
  const bool fits = pages <= state.total_bytes / page_bytes;
  try {
    status result = fits ? take_initial(lock, state, pages) : status{outcome::shortage};
    if (fits && result.shortage() && ask_others(lock, state, pages * page_bytes)) {
      result = take_initial(lock, state, pages);
    }
    if (result.shortage()) {
      throw_out_of_memory(lock, state, wanted);
    }
    require_ok(state.backend, result);
  } catch (...) {
    lock.freeze();
    release_all(lock, state);
    throw;
  }
}

/// Waits for all work, then gives back what no block in use or graph keeps.
template <typename Backend>
void release_everything(pool_state<Backend>& state) noexcept {
  pool_lock lock{state.caches};
  lock.freeze();
  if (fence_may_help(state)) {
    (void)fence(lock, state);
  }
  reap_after_fence(lock, state);
  if (state.memory.has_incomplete()) {  // what two captures had comes back behind a fence
    (void)fence(lock, state);
  }
  state.memory.merge_complete(quiet_stream);
  release_all(lock, state);
  state.memory.events.destroy_all(state.backend);
}

}  // namespace pagesift
