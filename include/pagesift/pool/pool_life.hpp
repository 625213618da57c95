// What a pool does when its process forks or exits, or its device is reset.
#pragma once

#include <pagesift/core/inlining.hpp>
#include <pagesift/core/process_life.hpp>
#include <pagesift/pool/state.hpp>

#include <condition_variable>
#include <new>

namespace pagesift {

/// Closes the gate of a pool whose backend is a driver in a forked child, and when the process
/// begins to exit. A pool of memory that the process has itself goes on: no other thread is amid
/// anything when the process forks, and a child forgets what other threads were waiting for.
template <typename Backend>
class pool_life final : public life_member {
 public:
  /// Joins. Precondition: `state` is complete, and stays until this is gone.
  explicit pool_life(pool_state<Backend>& state) noexcept : state_{state} {
    process_life::get().join(*this);
  }
  ~pool_life() override { leave(); }

  void leave() noexcept { process_life::get().leave(*this); }

  void before_fork() noexcept override {
    if constexpr (!needs_driver_v<Backend>) {
      state_.caches.mutex.lock();
      state_.caches.lock_all();
    }
  }

  void after_fork_in_parent() noexcept override {
    if constexpr (!needs_driver_v<Backend>) {
      state_.caches.unlock_all();
      state_.caches.mutex.unlock();
    }
  }

  void after_fork_in_child() noexcept override {
    // Not destroyed: that would wait for threads which are not here.
    new (&state_.range_settled) std::condition_variable_any;
    if constexpr (needs_driver_v<Backend>) {
      state_.gate.set(hit_gate::forked, true);
    } else {
      state_.ranges_in_motion = 0;
      state_.growing_bytes = 0;
      state_.caches.forget_other_threads();
      after_fork_in_parent();
    }
  }

  void at_exit() noexcept override {
    if constexpr (needs_driver_v<Backend>) {
      state_.gate.set(hit_gate::exiting, true);
    }
  }

 private:
  pool_state<Backend>& state_;
};

/// Whether the process has no way to the pool's memory any more. Asks the backend whether its
/// device was reset, and closes the gate if so: no later call gets as far as that.
template <typename Backend>
[[nodiscard]] bool is_out_of_reach(pool_state<Backend>& state) noexcept {
  if constexpr (knows_resets_v<Backend>) {
    if (!state.gate.out_of_reach() && state.backend.is_reset()) {
      state.gate.set(hit_gate::reset, true);
    }
  }
  return state.gate.out_of_reach();
}

/// \throws process_error
template <typename Backend>
[[noreturn]] PAGESIFT_RARELY_CALLED void throw_out_of_reach(const pool_state<Backend>& state) {
  if (state.gate.closed_by(hit_gate::forked)) {
    throw fork_error{Backend::memory_name};
  }
  if (!state.gate.closed_by(hit_gate::exiting)) {
    throw reset_error{};
  }
  process_life::get().rest_while_exiting();
  throw exit_error{Backend::memory_name};
}

/// \throws process_error where the process has no way to the pool's memory any more
template <typename Backend>
void require_reach(pool_state<Backend>& state) {
  if (is_out_of_reach(state)) {
    throw_out_of_reach(state);
  }
}

}  // namespace pagesift
