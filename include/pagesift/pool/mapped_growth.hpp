// How a pool on mapped memory comes by a run: new memory, free granules moved, granules made anew.
#pragma once

#include <pagesift/pool/growth_policy.hpp>
#include <pagesift/pool/mapped_memory.hpp>

#include <algorithm>
#include <cstddef>

namespace pagesift {

template <typename Backend>
[[nodiscard]] mapped_outlook outlook(const pool_state<Backend>& state) noexcept {
  mapped_outlook now;
  now.most = most_pages(state);
  now.held = state.counters.held() / page_bytes;
  now.room = room_pages(state);
  now.in_use = state.counters.in_use() / page_bytes;
  now.large_blocks = state.memory.heap.large_blocks();
  now.moved = state.memory.heap.moved_pages();
  return now;
}

/// Maps a run of the given shape, and more for a small request; while memory is plentiful, so that
/// there is a run of `class_pages`. Quiet granules are moved for it where the policy says so.
/// \throws std::bad_alloc
template <typename Backend>
status grow_mapped(pool_lock& lock, pool_state<Backend>& state, stream_id stream,
                   const run_shape& shape, std::size_t class_pages, bool& created) {
  const std::size_t pages = shape.pages;
  const bool slab = shape.block_bytes <= max_slab_block_bytes;
  const mapped_outlook now = outlook(state);
  const granule_bounds granules = new_granules(now, pages);
  const bool large = pages >= large_request_pages;
  assembly_terms terms;
  terms.most_new = now.room;
  terms.least_new = large ? 0 : now.least_new(slab);
  terms.extra_new = now.is_plentiful() ? class_pages - pages : 0;
  terms.smallest_piece = granules.smallest;
  terms.largest_piece = granules.largest;
  terms.moves = large && now.moves_before_growth();
  status result = map_run(lock, state, stream, pages, terms, created);
  if (result.shortage() && (terms.least_new > pages || terms.extra_new != 0)) {
    terms.least_new = terms.extra_new = 0;
    result = map_run(lock, state, stream, pages, terms, created);
  }
  return result;
}

/// Sifts: makes a run of `pages` pages out of whatever is free in whole granules, and new memory
/// as far as there is any. \throws std::bad_alloc
template <typename Backend>
status sift(pool_lock& lock, pool_state<Backend>& state, stream_id stream, std::size_t pages,
            bool& created) {
  assembly_terms terms;
  terms.most_new = room_pages(state);
  terms.smallest_piece = smallest_granule_pages;
  terms.largest_piece = largest_granule_pages;
  terms.most_surplus = outlook(state).most_surplus();
  status result = map_run(lock, state, stream, pages, terms, created);
  if (result.shortage() && terms.most_new != 0) {  // others have some of the device
    const memory_info info = unlocked(lock, [&] { return state.backend.memory(); });
    terms.most_new = std::min(room_pages(state), info.free_bytes / page_bytes);
    result = map_run(lock, state, stream, pages, terms, created);
  }
  if (result.shortage() && terms.most_new != 0) {
    terms.most_new = 0;
    result = map_run(lock, state, stream, pages, terms, created);
  }
  return result;
}

/// Makes room for `pages` pages in the quiet run that fits them best where they would cut a granule
/// so that more than `most_surplus` pages of it are left: the granule is released, and as much of
/// it as is needed is created anew. `split` says whether there was one; the rest can be had as new
/// memory wherever it is wanted. \throws std::bad_alloc
template <typename Backend>
status split_granule(pool_lock& lock, pool_state<Backend>& state, stream_id stream,
                     std::size_t pages, std::size_t most_surplus, bool& split) {
  granule* const coarse = state.memory.heap.remove_coarse(pages, most_surplus);
  split = coarse != nullptr;
  if (!split) {
    return {};
  }
  const status released = release_mapped(lock, state, coarse);
  if (!released.ok()) {
    return released;
  }
  assembly_terms terms;
  terms.most_new = room_pages(state);
  terms.smallest_piece = terms.largest_piece = largest_granule_pages;
  terms.moves = false;
  bool created = false;
  return map_run(lock, state, stream, pages, terms, created);
}

}  // namespace pagesift
