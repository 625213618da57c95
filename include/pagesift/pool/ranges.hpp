// How a pool takes memory from its backend and gives it back.
#pragma once

#include <pagesift/pool/state.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
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

/// Bytes the pool may still take under its limit.
template <typename Backend>
std::size_t room(const pool_state<Backend>& state) noexcept {
  const std::size_t taken = state.counters.held() + state.growing_bytes;
  return state.options.limit_bytes > taken ? state.options.limit_bytes - taken : 0;
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
  const acquisition a =
      unlocked(lock, [&] { return acquire_pages(state.backend, pages, reserved); });
  state.growing_bytes -= reserved;
  if (a.memory == nullptr) {
    state.memory.heap.discard(std::move(prepared));
    return a.result;
  }
  state.memory.heap.add(std::move(prepared), a.memory, a.bytes);
  state.counters.acquired(a.bytes);
  return a.result;
}

/// Adds a range that holds a run of `shape`, larger where small ranges would be many.
/// \throws std::bad_alloc
template <typename Backend>
status grow(pool_lock& lock, pool_state<Backend>& state, const run_shape& shape) {
  const std::size_t generous = std::max(shape.pages, state.next_range_pages);
  status result = add_range(lock, state, generous);
  if (result.ok() && generous == state.next_range_pages) {
    state.next_range_pages = std::min(2 * generous, max_range_pages);
  }
  if (result.shortage() && generous != shape.pages) {
    result = add_range(lock, state, shape.pages);
  }
  return result;
}

/// Releases the range that has been quiet for longest, of those not touched since batch `before`.
/// `released` says whether there was one. On failure the range stays.
template <typename Backend>
status release_oldest(pool_lock& lock, pool_state<Backend>& state, bool& released,
                      std::uint64_t before = std::numeric_limits<std::uint64_t>::max()) noexcept {
  page_range* oldest = state.memory.heap.oldest_quiet_range(before);
  released = oldest != nullptr;
  if (!released) {
    return {};
  }
  auto removed = state.memory.heap.remove(*oldest);
  void* memory = removed.range->acquired;
  const std::size_t bytes = removed.range->acquired_bytes;
  ++state.releases_in_progress;
  const status result = unlocked(lock, [&] { return state.backend.release(memory, bytes); });
  --state.releases_in_progress;
  state.release_done.notify_all();
  if (!result.ok()) {
    released = false;
    state.memory.heap.add(std::move(removed), memory, bytes);
    return result;
  }
  state.counters.released(bytes);
  state.memory.heap.discard(std::move(removed));
  return result;
}

}  // namespace pagesift
