// How a pool takes memory from its backend and gives it back, mapped or plain.
#pragma once

#include <pagesift/pool/growth_policy.hpp>
#include <pagesift/pool/mapped_growth.hpp>
#include <pagesift/pool/ranges.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace pagesift {

/// Adds memory for a run of the given shape for `stream`, more where small pieces would be many, or
/// requests of the same class are to find `class_pages`. `created` says whether any is new.
/// Shortage is the backend's or the limit's.
/// \throws std::bad_alloc
template <typename Backend>
status grow(pool_lock& lock, pool_state<Backend>& state, stream_id stream, const run_shape& shape,
            std::size_t class_pages, bool& created) {
  if constexpr (is_virtual_backend_v<Backend>) {
    if (state.maps) {
      return grow_mapped(lock, state, stream, shape, class_pages, created);
    }
  }
  created = true;
  const std::size_t next = next_range_pages(state.counters.held() / page_bytes);
  const status result = add_range(lock, state, std::max(shape.pages, next));
  return result.shortage() && next > shape.pages ? add_range(lock, state, shape.pages) : result;
}

/// The same in a shortage: no more than is needed, and where memory is mapped, from free granules
/// first. \throws std::bad_alloc
template <typename Backend>
status grow_tight(pool_lock& lock, pool_state<Backend>& state, stream_id stream, std::size_t pages,
                  bool& created) {
  if constexpr (is_virtual_backend_v<Backend>) {
    if (state.maps) {
      return sift(lock, state, stream, pages, created);
    }
  }
  created = true;
  return add_range(lock, state, pages);
}

/// Takes a pool's first memory. \throws std::bad_alloc
template <typename Backend>
status take_initial(pool_lock& lock, pool_state<Backend>& state, std::size_t pages) {
  if constexpr (is_virtual_backend_v<Backend>) {
    if (state.maps) {
      bool created = false;
      assembly_terms terms;
      terms.most_new = room_pages(state);
      terms.smallest_piece = terms.largest_piece = usual_granule_pages;
      return map_run(lock, state, quiet_stream, pages, terms, created);
    }
  }
  return add_range(lock, state, pages);
}

/// Releases quiet granules, the oldest first, until `bytes` bytes are released, of those not
/// touched since batch `before`. `released` says whether there was one and it went. On failure the
/// rest stay.
template <typename Backend>
status release_oldest(pool_lock& lock, pool_state<Backend>& state, std::size_t bytes,
                      bool& released, std::uint64_t before = page_heap::any_batch) noexcept {
  // An acquisition may take long to release, and one may suffice: they go one by one.
  const std::size_t pages = state.maps ? divide_round_up(bytes, page_bytes) : 1;
  granule* oldest = state.memory.heap.remove_oldest(pages, before);
  released = oldest != nullptr;
  status result;
  if (released && !state.maps) {
    result = release_range(lock, state, *oldest);
  }
  if constexpr (is_virtual_backend_v<Backend>) {
    if (released && state.maps) {
      result = release_mapped(lock, state, oldest);
    }
  }
  released = released && result.ok();
  state.ranges_moved += released ? 1 : 0;
  return result;
}

/// Releases all quiet granules; one that cannot be released keeps no other from it.
template <typename Backend>
void release_all(pool_lock& lock, pool_state<Backend>& state) noexcept {
  bool released = false;
  // What cannot be released becomes the youngest, so that each is tried once.
  for (std::size_t untried = state.memory.heap.granule_count(); untried != 0; --untried) {
    (void)release_oldest(lock, state, page_bytes, released);
  }
  if constexpr (is_virtual_backend_v<Backend>) {
    unreserve_all(lock, state);
  }
}

}  // namespace pagesift
