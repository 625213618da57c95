// The steps of a pool on mapped memory: addresses, a run put together, granules given back.
#pragma once

#include <pagesift/pool/piece_mover.hpp>
#include <pagesift/pool/ranges.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>

namespace pagesift {

/// Pages that the pool may still create, under its limit and by what the device has in all.
template <typename Backend>
[[nodiscard]] std::size_t room_pages(const pool_state<Backend>& state) noexcept {
  const std::size_t taken = state.counters.held() + state.growing_bytes;
  const std::size_t left = state.total_bytes > taken ? state.total_bytes - taken : 0;
  return std::min(room(state), left) / page_bytes;
}

/// Reserves addresses: several times what the device has, so that they are rarely short; less where
/// the system does not give so many, but at least `pages` pages. \throws std::bad_alloc
template <typename Backend>
status reserve_addresses(pool_lock& lock, pool_state<Backend>& state, std::size_t pages) {
  constexpr std::size_t times_the_memory = 4;
  auto prepared = state.memory.heap.prepare_reservation();
  void* base = nullptr;
  std::size_t bytes = std::max(times_the_memory * most_pages(state), pages) * page_bytes;
  const status result = move_range(lock, state, [&] {
    status reserved = state.backend.reserve(bytes, base);
    while (!reserved.ok() && bytes / page_bytes > pages) {
      bytes = std::max(bytes / page_bytes / 2, pages) * page_bytes;
      reserved = state.backend.reserve(bytes, base);
    }
    return reserved;
  });
  if (result.ok()) {
    state.memory.heap.add_reservation(std::move(prepared), base, bytes);
  } else {
    state.memory.heap.discard_reservation(std::move(prepared));
  }
  return result;
}

/// Makes the backend calls of an assembly, counts what came and went, and ends it.
template <typename Backend>
status carry_out(pool_lock& lock, pool_state<Backend>& state, assembly& a) noexcept {
  const std::size_t new_bytes = a.new_pages() * page_bytes;
  state.growing_bytes += new_bytes;
  const status result = move_range(lock, state, [&] {
    for (const assembly_piece& p : a.pieces) {
      if (!p.is_new) {
        note_memory_leaves(state, p.piece->start, p.piece->bytes());
      }
    }
    return piece_mover<Backend>{state.backend, state.options.mapping}.move(a);
  });
  state.growing_bytes -= new_bytes;
  for (const assembly_piece& p : a.pieces) {
    if (p.is_new && p.state == piece_state::at_target) {
      state.counters.acquired(p.piece->bytes());
    } else if (!p.is_new && p.state == piece_state::nowhere) {
      state.counters.released(p.piece->bytes());
    }
  }
  state.memory.heap.finish(a);
  state.ranges_moved += result.ok() ? 1 : 0;
  return result;
}

/// Unmaps and destroys a list of granules that were taken out of the heap; at the first failure the
/// rest go back into it.
template <typename Backend>
status release_mapped(pool_lock& lock, pool_state<Backend>& state, granule* first) noexcept {
  granule* failed = nullptr;
  bool lost = false;
  const status result = move_range(lock, state, [&] {
    piece_mover<Backend> mover{state.backend, state.options.mapping};
    status each;
    for (granule* g = first; g != nullptr && each.ok(); g = g->next) {
      note_memory_leaves(state, g->start, g->bytes());
      each = mover.release(*g, lost);
      failed = each.ok() ? nullptr : g;
    }
    return each;
  });
  bool kept = false;
  for (granule* g = first; g != nullptr;) {
    granule& settled = *g;
    g = g->next;
    kept = kept || (&settled == failed && !lost);
    if (kept) {
      state.memory.heap.put_back(settled);
    } else {
      state.counters.released(settled.bytes());
      state.memory.heap.forget(settled);
    }
    kept = kept || &settled == failed;
  }
  return result;
}

/// Makes a run of `pages` pages for `stream`, from free granules and new memory as the terms allow.
/// `created` says whether any is new. Shortage: there is not so much. \throws std::bad_alloc
template <typename Backend>
status map_run(pool_lock& lock, pool_state<Backend>& state, stream_id stream, std::size_t pages,
               assembly_terms terms, bool& created) {
  assembly a = state.memory.heap.assemble(stream, pages, terms);
  if (a.verdict == assembly_verdict::too_coarse) {
    const status released = release_mapped(lock, state, a.coarse);
    if (!released.ok()) {
      return released;
    }
    terms.most_new = std::max(terms.most_new, room_pages(state));
    terms.most_surplus = page_heap::any_surplus;
    a = state.memory.heap.assemble(stream, pages, terms);
  }
  if (a.verdict == assembly_verdict::no_addresses) {
    const status result = reserve_addresses(lock, state, 2 * pages);
    if (!result.ok()) {
      return result;
    }
    terms.most_surplus = page_heap::any_surplus;
    a = state.memory.heap.assemble(stream, pages, terms);
  }
  if (a.verdict != assembly_verdict::ready) {
    return {outcome::shortage};
  }
  created = a.new_pages() != 0;
  return carry_out(lock, state, a);
}

/// Gives back the addresses behind which no memory is left. On failure they stay reserved.
template <typename Backend>
void unreserve_all(pool_lock& lock, pool_state<Backend>& state) noexcept {
  while (const auto space = state.memory.heap.remove_empty_reservation()) {
    (void)unlocked(lock,
                   [&] { return state.backend.unreserve(space->acquired, space->acquired_bytes); });
  }
}

}  // namespace pagesift
