// How a pool acquires plain memory from its backend and gives it back.
#pragma once

#include <pagesift/pool/state.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace pagesift {

/// Memory got from a backend that starts at a page boundary or has a page to spare.
struct acquisition {
  status result;
  void* memory = nullptr;  ///< null: none; it may have been got although `result` is a failure
  std::size_t bytes = 0;
};

/// Takes memory for `pages` whole pages, at most `room` bytes. A backend need not align to pages:
/// where it did not, one page more is asked for.
template <typename Backend>
acquisition acquire_pages(Backend& backend, std::size_t pages, std::size_t room) noexcept {
  acquisition a;
  a.bytes = pages * page_bytes;
  a.result = backend.acquire(a.bytes, a.memory);
  if (!a.result.ok() || page_heap::page_slack(a.memory) == 0) {
    return a;
  }
  a.result = backend.release(a.memory, a.bytes);
  if (!a.result.ok()) {
    return a;  // still there, if with a page less than was wanted
  }
  a.memory = nullptr;
  a.bytes += page_bytes;
  a.result = a.bytes > room ? status{outcome::shortage} : backend.acquire(a.bytes, a.memory);
  return a;
}

/// Pages that the pool may ever hold: under its limit, and of what the backend has in all.
template <typename Backend>
std::size_t most_pages(const pool_state<Backend>& state) noexcept {
  return std::min(state.options.limit_bytes, state.total_bytes) / page_bytes;
}

/// Bytes the pool may still take under its limit.
template <typename Backend>
std::size_t room(const pool_state<Backend>& state) noexcept {
  const std::size_t taken = state.counters.held() + state.growing_bytes;
  return state.options.limit_bytes > taken ? state.options.limit_bytes - taken : 0;
}

/// Makes a backend call that takes memory or gives it back, without the lock. Threads in a shortage
/// wait for such calls before they give up: what is on its way may be what they need.
template <typename Backend, typename Call>
auto move_range(pool_lock& lock, pool_state<Backend>& state, Call&& call) {
  ++state.ranges_in_motion;
  const auto result = unlocked(lock, std::forward<Call>(call));
  --state.ranges_in_motion;
  state.range_settled.notify_all();
  return result;
}

/// Adds a range of `pages` pages to the heap. Shortage is the backend's or the limit's.
/// \throws std::bad_alloc
template <typename Backend>
status add_range(pool_lock& lock, pool_state<Backend>& state, std::size_t pages) {
  const std::size_t allowed = room(state);
  if (pages > allowed / page_bytes) {
    return {outcome::shortage};
  }
  auto prepared = state.memory.heap.prepare(pages + 1);
  const std::size_t reserved = std::min(allowed, (pages + 1) * page_bytes);
  state.growing_bytes += reserved;
  const acquisition a = move_range(lock, state, [&] {
    const acquisition got = acquire_pages(state.backend, pages, reserved);
    if (got.memory != nullptr) {
      note_memory_came(state, got.memory, got.bytes);
    }
    return got;
  });
  state.growing_bytes -= reserved;
  if (a.memory == nullptr) {
    state.memory.heap.discard(std::move(prepared));
    return a.result;
  }
  state.memory.heap.add(std::move(prepared), a.memory, a.bytes);
  state.counters.acquired(a.bytes);
  ++state.ranges_moved;
  return a.result;
}

/// Releases an acquisition that was taken out of the heap. On failure it stays.
template <typename Backend>
status release_range(pool_lock& lock, pool_state<Backend>& state, granule& g) noexcept {
  page_heap& heap = state.memory.heap;
  void* memory = g.place->space->acquired;
  const std::size_t bytes = g.place->space->acquired_bytes;
  const status result = move_range(lock, state, [&] {
    note_memory_leaves(state, memory, bytes);
    const status released = state.backend.release(memory, bytes);
    if (!released.ok()) {
      note_memory_came(state, memory, bytes);
    }
    return released;
  });
  if (!result.ok()) {
    heap.put_back(g);
    return result;
  }
  state.counters.released(bytes);
  ++state.ranges_moved;
  heap.forget(g);
  return result;
}

}  // namespace pagesift
