// What a pool consists of, and the rule for calling out of it.
#pragma once

#include <pagesift/front/cache_registry.hpp>
#include <pagesift/front/idle_memory.hpp>
#include <pagesift/front/last_streams.hpp>
#include <pagesift/pool/batch_requests.hpp>
#include <pagesift/pool/capture_arenas.hpp>
#include <pagesift/pool/checked/block_watch.hpp>
#include <pagesift/pool/counters.hpp>
#include <pagesift/pool/environment.hpp>
#include <pagesift/pool/hit_gate.hpp>
#include <pagesift/pool/known_captures.hpp>
#include <pagesift/pool/options.hpp>
#include <pagesift/pool/shortage_helpers.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace pagesift {

/// All state of a pool. The mutex in `caches` guards everything but `backend`, `options` and
/// `number`, which need no guard, and what is atomic. A hit takes only the lock of one cache.
template <typename Backend>
struct pool_state {
  using stream_type = typename Backend::stream_type;

  pool_state(Backend b, pool_options o)
      : backend{b},
        options{with_environment(std::move(o))},
        counters{caches},
        memory{b, caches},
        watch{block_watch<Backend>::wanted(options)
                  ? std::make_unique<block_watch<Backend>>(backend, options)
                  : nullptr} {
    gate.set(hit_gate::watched, watch != nullptr);
  }

  Backend backend;
  const pool_options options;
  const std::uint64_t number = next_pool_number();
  std::size_t total_bytes = 0;  ///< what the backend has in all
  bool maps = false;            ///< memory is mapped behind reserved addresses, not acquired

  cache_registry caches;
  pool_counters counters;
  idle_memory<Backend> memory;
  hit_gate gate;
  known_captures<stream_type> captures{gate};
  const std::unique_ptr<block_watch<Backend>> watch;  ///< in checked mode, else null
  std::conditional_t<is_capturing_backend_v<Backend>, capture_arenas<Backend>, no_capture_arenas>
      arenas;
  batch_requests batch;
  std::atomic<std::uint64_t> asks{0};  ///< misses that wished another stream had sealed its frees
  std::atomic<bool> idle_abounds{false};  ///< a third of what is held, or more, was idle last time
  std::uint64_t ranges_moved = 0;         ///< ranges taken or released so far
  std::size_t growing_bytes = 0;          ///< asked of the backend, not there yet
  int ranges_in_motion = 0;  ///< backend calls in progress that take memory or give it back
  std::condition_variable_any range_settled;
  giver_registration gives;  ///< what makes other pools ask this one

  /// Looks anew whether memory is plentiful. Precondition: every cache is locked.
  void note_plenty() noexcept {
    const std::size_t in_use = counters.in_use();
    idle_abounds.store(counters.held() - in_use >= in_use / 2, std::memory_order_relaxed);
  }

  /// Blocks taken back and ranges taken or released so far. Precondition: every cache is locked.
  [[nodiscard]] std::uint64_t arrivals() const noexcept { return caches.frees() + ranges_moved; }
};

/// Memory has come from the backend; only the caller knows of it yet.
template <typename Backend>
void note_memory_came(pool_state<Backend>& state, const void* p, std::size_t bytes) noexcept {
  if (state.watch != nullptr) {
    state.watch->came(p, bytes);
  }
}

/// Memory that nobody else knows of is about to be given back to the backend, or moved.
template <typename Backend>
void note_memory_leaves(pool_state<Backend>& state, const void* p, std::size_t bytes) noexcept {
  if (state.watch != nullptr) {
    state.watch->leaves(p, bytes);
  }
}

/// Runs `f` without any lock, and takes the same locks again. Every backend call that may block and
/// every call of user code goes through here, so that no other thread waits for it.
template <typename Function>
auto unlocked(pool_lock& lock, Function&& f) {
  struct relock {
    explicit relock(pool_lock& l) : lock{l} { lock.unlock(); }
    ~relock() { lock.lock(); }
    relock(const relock&) = delete;
    relock& operator=(const relock&) = delete;
    pool_lock& lock;
  };
  const relock guard{lock};
  return std::forward<Function>(f)();
}

/// Keeps a stream's record, or a capture's arena, while a call goes on without the lock.
template <typename Kept>
class pinned {
 public:
  explicit pinned(Kept& kept) noexcept : kept_{kept} { ++kept_.pins; }
  ~pinned() { --kept_.pins; }
  pinned(const pinned&) = delete;
  pinned& operator=(const pinned&) = delete;

 private:
  Kept& kept_;
};

}  // namespace pagesift
