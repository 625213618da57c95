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
  const acquisition a =
      move_range(lock, state, [&] { return acquire_pages(state.backend, pages, reserved); });
  state.growing_bytes -= reserved;
  if (a.memory == nullptr) {
    state.memory.heap.discard(std::move(prepared));
    return a.result;
  }
  state.memory.heap.add(std::move(prepared), a.memory, a.bytes);
  state.counters.acquired(a.bytes);
  ++state.arrivals;
  return a.result;
}

/// Pages of the next range while a pool holds `held_pages`: as many again up to 32 MiB, then a
/// quarter of what is held, at most 8 GiB. A pool then reaches any size in few calls, and blocks of
/// changing sizes find room in few long ranges (docs/decisions/0007-ranges-grow-with-the-pool.md).
[[nodiscard]] constexpr std::size_t next_range_pages(std::size_t held_pages) noexcept {
  constexpr std::size_t doubling = 32 * mebibyte / page_bytes;
  constexpr std::size_t most = 8 * gibibyte / page_bytes;
  const std::size_t doubled = std::max<std::size_t>(std::min(held_pages, doubling), 1);
  return std::min(std::max(doubled, held_pages / 4), most);
}

/// Adds a range that holds a run of `shape`, larger where small ranges would be many.
/// \throws std::bad_alloc
template <typename Backend>
status grow(pool_lock& lock, pool_state<Backend>& state, const run_shape& shape) {
  const std::size_t next = next_range_pages(state.counters.held() / page_bytes);
  const status result = add_range(lock, state, std::max(shape.pages, next));
  return result.shortage() && next > shape.pages ? add_range(lock, state, shape.pages) : result;
}

/// Releases the granule that has been quiet for longest, of those not touched since batch `before`.
/// `released` says whether there was one. On failure it stays.
template <typename Backend>
status release_oldest(pool_lock& lock, pool_state<Backend>& state, bool& released,
                      std::uint64_t before = std::numeric_limits<std::uint64_t>::max()) noexcept {
  page_heap& heap = state.memory.heap;
  const page_heap::removed_granule oldest = heap.remove_oldest(before);
  released = oldest.piece != nullptr;
  if (!released) {
    return {};
  }
  void* memory = oldest.place->space->acquired;
  const std::size_t bytes = oldest.place->space->acquired_bytes;
  const status result =
      move_range(lock, state, [&] { return state.backend.release(memory, bytes); });
  if (!result.ok()) {
    released = false;
    heap.put_back(oldest);
    return result;
  }
  state.counters.released(bytes);
  ++state.arrivals;
  heap.forget(oldest);
  return result;
}

}  // namespace pagesift
