// A pool's state, which outlives the pool where the process is about to end.
#pragma once

#include <pagesift/core/process_life.hpp>
#include <pagesift/pool/state.hpp>

#include <utility>

namespace pagesift {

/// Keeps a pool's state; leaves it as it is when the process exits or has no way to the backend.
/// Objects that are destroyed later may still free into a static pool then, other threads may be
/// amid a call, and what the state holds of the driver's must not be given back.
template <typename Backend>
class kept_state {
 public:
  kept_state(const kept_state&) = delete;
  kept_state& operator=(const kept_state&) = delete;

 protected:
  kept_state(Backend backend, pool_options options)
      : state_{std::move(backend), std::move(options)} {}
  ~kept_state() {
    if (!process_life::get().exiting() && !state_.gate.out_of_reach()) {
      state_.~pool_state();
    }
  }

  union {
    mutable pool_state<Backend> state_;  // NOLINT(readability-identifier-naming): the class's
  };
};

}  // namespace pagesift
