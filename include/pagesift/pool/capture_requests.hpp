// Requests and frees on capturing streams, and the return of memory whose graphs are over.
#pragma once

#include <pagesift/core/error.hpp>
#include <pagesift/pool/hit_path.hpp>
#include <pagesift/pool/ordering.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

namespace pagesift {

/// Puts a parked block whose graph is over where its other last use, `b.use`, has it wait.
/// Precondition: every cache is locked.
template <typename Backend>
void return_parked(pool_state<Backend>& state, block& b) noexcept {
  stream_table<Backend>& streams = state.memory.streams;
  if (names_arena(b.use.stream)) {
    // The stream that the other capture began on may have used it before: a fence shows the end.
    const last_use before_the_other = streams.unordered_now();
    if (capture_arena<Backend>* other = state.arenas.with_id(b.use.stream)) {
      other->add(b);
      other->keep(b, before_the_other);
      return;
    }
    b.use = before_the_other;
  }
  if (!b.use.quiet() && b.use.stream != unordered_stream) {
    --streams.find(b.use.stream).pins;
  }
  const bool complete = streams.is_complete(b.use);
  stream_record<Backend>& r = complete ? streams.quiet() : streams.find(b.use.stream);
  r.first_cache().push_late(b, complete ? last_use{} : b.use);
}

/// Gives back the memory of graphs that are over.
template <typename Backend>
void reap_arenas(pool_lock& lock, pool_state<Backend>& state) noexcept {
  if constexpr (is_capturing_backend_v<Backend>) {
    std::atomic<unsigned>& deaths = *state.arenas.deaths();
    if (deaths.load(std::memory_order_relaxed) == 0) {
      return;
    }
    const bool was_frozen = lock.frozen();
    lock.freeze();
    (void)deaths.exchange(0, std::memory_order_acq_rel);
    while (const auto dead = state.arenas.take_dead()) {
      dead->release([&](block& b) { return_parked(state, b); });
      state.captures.ended(dead->capture);
    }
    if (state.arenas.has_dead()) {  // somebody is at work with it
      deaths.fetch_add(1, std::memory_order_relaxed);
    }
    if (!was_frozen) {
      lock.thaw();
    }
  }
}

/// Whether idle memory waits for work that a fence would see the end of: of a stream, or of the
/// last launch of a graph.
template <typename Backend>
bool fence_may_help(pool_state<Backend>& state) noexcept {
  return state.memory.has_incomplete() || state.arenas.bytes() != 0;
}

/// Whether a graph has ended whose memory `reap_arenas` would give back.
template <typename Backend>
bool graphs_have_ended([[maybe_unused]] const pool_state<Backend>& state) noexcept {
  if constexpr (is_capturing_backend_v<Backend>) {
    return state.arenas.deaths()->load(std::memory_order_relaxed) != 0 &&
           state.arenas.can_take_dead();
  } else {
    return false;
  }
}

/// How long to wait for word of a graph's end: CUDA tells about 0.2 ms after the last launch.
inline constexpr std::chrono::microseconds word_of_an_end{1000};

/// Waits, without a lock, for word that a graph has ended. Returns whether there is memory to give
/// back now.
template <typename Backend>
bool await_word_of_an_end(pool_lock& lock, pool_state<Backend>& state) noexcept {
  const auto told = [deaths = state.arenas.deaths()] {
    return deaths->load(std::memory_order_relaxed) != 0;
  };
  unlocked(lock, [&] {
    const auto until = std::chrono::steady_clock::now() + word_of_an_end;
    while (!told()) {
      if constexpr (has_rest_v<Backend>) {
        state.backend.rest();
      }
      if (told() || std::chrono::steady_clock::now() >= until) {
        return;
      }
      std::this_thread::yield();
    }
  });
  return graphs_have_ended(state);
}

/// Gives back the memory of graphs that are over after a fence, those included of which word is
/// still to come.
template <typename Backend>
void reap_after_fence(pool_lock& lock, pool_state<Backend>& state) noexcept {
  if constexpr (is_capturing_backend_v<Backend>) {
    do {
      reap_arenas(lock, state);
    } while (state.arenas.bytes() != 0 && await_word_of_an_end(lock, state));
  }
}

/// The arena of a capture that goes on, made at first sight.
/// \throws backend_error where the graph cannot be watched, std::bad_alloc; nothing is kept then
template <typename Backend>
capture_arena<Backend>& arena_of(pool_lock& lock, pool_state<Backend>& state,
                                 const capture_state_of<Backend>& capture) {
  if (capture_arena<Backend>* present = state.arenas.of_capture(capture.capture)) {
    return *present;
  }
  auto* const watch = new graph_watch{state.arenas.deaths()};
  watch_owner owner{watch};
  require_ok(state.backend, unlocked(lock, [&] {
               return state.backend.watch_graph(capture.graph, &graph_watch::raise, watch);
             }));
  if (capture_arena<Backend>* present = state.arenas.of_capture(capture.capture)) {
    return *present;  // another stream of the capture was quicker
  }
  return state.arenas.make(capture.capture, std::move(owner));
}

/// What the backend knows of the capture on a stream that was seen capturing.
template <typename Backend>
capture_state_of<Backend> look_at_capture(pool_lock& lock, pool_state<Backend>& state,
                                          typename Backend::stream_type stream) noexcept {
  return unlocked(lock, [&] { return state.backend.look_at_capture(stream); });
}

/// Counts a block as given back that goes into no cache.
template <typename Backend>
void count_free(pool_lock& lock, pool_state<Backend>& state, const block& b) noexcept {
  stream_cache& counting = state.memory.streams.quiet().first_cache();
  std::optional<cache_guard> guard;
  if (!lock.frozen()) {
    guard.emplace(counting.lock);
  }
  count_back(state, counting, b);
}

/// The use that a stream outside of captures has of a block freed on it now.
template <typename Backend>
last_use use_on(pool_state<Backend>& state, const stream_state& seen) noexcept {
  stream_table<Backend>& streams = state.memory.streams;
  if (seen.result.ok() && !seen.capturing) {
    try {
      stream_record<Backend>& r = streams.of(seen.id);
      ++r.pins;  // a stream that a parked block waits for is not forgotten
      r.newest_away = r.timeline.current();
      return {r.id, r.newest_away};
    } catch (const std::bad_alloc&) {
    }
  }
  return streams.unordered_now();
}

/// What a parked block has to wait for besides graphs: `after`, which is quiet where a fence came
/// after all uses, and the uses on other streams that the pool was told of. A fence shows the end
/// of those, so they are not remembered.
template <typename Backend>
last_use with_other_uses(pool_state<Backend>& state, block& b, last_use after) noexcept {
  if (!state.memory.elsewhere.forget(b, state.memory.events) || after.quiet()) {
    return after;
  }
  stream_table<Backend>& streams = state.memory.streams;
  if (after.stream != unordered_stream) {
    --streams.find(after.stream).pins;
  }
  return streams.unordered_now();
}

/// Parks a claimed block of a living arena until its graph is over and `after` is complete. Returns
/// whether there was such an arena.
template <typename Backend>
bool keep_for_graph(pool_lock& lock, pool_state<Backend>& state, block& b,
                    last_use after) noexcept {
  if constexpr (is_capturing_backend_v<Backend>) {
    if (capture_arena<Backend>* const home = state.arenas.with_id(b.use.stream)) {
      count_free(lock, state, b);
      home->keep(b, with_other_uses(state, b, after));
      return true;
    }
  }
  return false;
}

/// Parks a block freed on a stream that captures. One of that capture's own may serve there again;
/// others wait for the graph's end, since it may name them. Of what a stream did before it began to
/// capture nothing says whether it is complete but a fence. Returns whether it was parked: a
/// capture that came to nothing keeps none.
template <typename Backend>
bool park_on_capture(pool_lock& lock, pool_state<Backend>& state, block& b,
                     typename Backend::stream_type stream, const stream_state& seen) noexcept {
  const last_use before_the_capture = state.memory.streams.unordered_now();
  const bool other_uses = state.memory.elsewhere.forget(b, state.memory.events);
  const auto capture = look_at_capture(lock, state, stream);
  capture_arena<Backend>* current = nullptr;
  if (!capture.result.ok() || capture.active) {
    try {
      require_ok(state.backend, capture.result);
      state.captures.belongs_to(stream, seen, capture.capture);
      current = &arena_of(lock, state, capture);
    } catch (const std::exception&) {  // a graph that nobody can watch may name the block
      count_free(lock, state, b);
      state.arenas.strand(b);
      return true;
    }
  }
  if (current == nullptr) {
    return keep_for_graph(lock, state, b, before_the_capture);
  }
  capture_arena<Backend>* const home = state.arenas.with_id(b.use.stream);
  count_free(lock, state, b);
  if (home == current && other_uses) {
    home->keep(b, before_the_capture);  // nothing orders the capture's next user behind them
  } else if (home == current && capture.position.known) {
    home->park(b, capture.position);
  } else if (home != nullptr) {
    home->keep(b, home == current ? last_use{} : last_use{current->id, 0});
  } else {
    current->add(b);
    current->keep(b, before_the_capture);
  }
  return true;
}

/// Takes note that a stream does not capture, unless others are busy in the pool: a later free will
/// do.
template <typename Backend>
void see_not_capturing(pool_state<Backend>& state, typename Backend::stream_type stream) noexcept {
  const std::unique_lock lock{state.caches.mutex, std::try_to_lock};
  if (lock.owns_lock()) {
    state.captures.left(stream);
  }
}

/// Parks a claimed block that a graph may name; returns whether that was so.
template <typename Backend>
bool park_if_captured(pool_lock& lock, pool_state<Backend>& state, block& b,
                      typename Backend::stream_type stream, const stream_state& seen) noexcept {
  if constexpr (is_capturing_backend_v<Backend>) {
    const bool capturing = seen.result.ok() && seen.capturing;
    if (!capturing && !names_arena(b.use.stream)) {
      return false;
    }
    reap_arenas(lock, state);
    if (seen.result.ok()) {
      state.captures.see(stream, seen);
    }
    if (capturing) {
      return park_on_capture(lock, state, b, stream, seen);
    }
    if (state.arenas.with_id(b.use.stream) != nullptr) {
      return keep_for_graph(lock, state, b, use_on(state, seen));
    }
  }
  return false;
}

}  // namespace pagesift
