// How a request that no idle block of its class can serve gets one from pages, free or new.
#pragma once

#include <pagesift/core/error.hpp>
#include <pagesift/pool/growth.hpp>
#include <pagesift/pool/ordering.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>

namespace pagesift {

/// One request on its way: who asks, for what, and on which stream if the caller named one.
template <typename Backend>
struct errand {
  stream_record<Backend>& taker;
  const request& wanted;
  std::optional<typename Backend::stream_type> stream;
  bool grew = false;  ///< memory was taken from the backend for it
};

/// Cuts the request's block from memory that was just made ready for it with `result`; null where
/// there was none left. `created`: some of it is new. \throws backend_error, std::bad_alloc
template <typename Backend>
block* block_of_new_run(pool_state<Backend>& state, errand<Backend>& e, const run_shape& shape,
                        const status& result, bool created) {
  if (result.shortage()) {
    return nullptr;
  }
  require_ok(state.backend, result);
  e.grew = e.grew || created;
  return state.memory.fresh_block(e.taker, e.wanted, shape);
}

/// Learns which of the taker's idle memory is complete now, and merges that: only such memory may
/// be moved. An event on a stream without work is complete after some microseconds, so it is asked
/// after repeatedly, for less time than creating memory takes. Returns whether anything may have
/// come of it.
/// \throws backend_error, std::bad_alloc
template <typename Backend>
bool settle_own(pool_lock& lock, pool_state<Backend>& state, errand<Backend>& e) {
  if (!e.stream || !state.memory.has_incomplete(e.taker)) {
    return false;
  }
  const status sealed = seal(lock, state, e.taker, *e.stream);
  if (sealed.shortage()) {
    return false;
  }
  require_ok(state.backend, sealed);
  constexpr int most_questions = 64;
  {
    const thawed hits_go_on{lock};
    for (int asked = 0; asked < most_questions && e.taker.timeline.has_pending(); ++asked) {
      require_ok(state.backend, state.memory.poll());
    }
  }
  state.memory.merge_complete(e.taker.id);
  return true;
}

/// Serves a large request while memory is scarce: where that leaves little of a granule, else in a
/// granule made anew, else as it is. \throws backend_error, std::bad_alloc
template <typename Backend>
block* scarce_block(pool_lock& lock, pool_state<Backend>& state, errand<Backend>& e,
                    const run_shape& shape, std::size_t most_surplus) {
  idle_memory<Backend>& memory = state.memory;
  if (settle_own(lock, state, e)) {
    if (block* b = memory.fresh_block(e.taker, e.wanted, shape, most_surplus)) {
      return b;
    }
  }
  if constexpr (is_virtual_backend_v<Backend>) {
    bool split = false;
    const status result = split_granule(lock, state, e.taker.id, shape.pages, most_surplus, split);
    if (!result.shortage()) {
      require_ok(state.backend, result);
    }
  }
  return memory.fresh_block(e.taker, e.wanted, shape);
}

/// New memory for the request, and free memory moved together with it where that is worth it.
/// \throws backend_error, std::bad_alloc
template <typename Backend>
block* block_of_growth(pool_lock& lock, pool_state<Backend>& state, errand<Backend>& e,
                       const run_shape& shape) {
  bool created = false;
  const std::size_t class_pages = std::max(shape.pages, e.wanted.plenty.pages);
  const status grown = grow(lock, state, e.taker.id, shape, class_pages, created);
  return block_of_new_run(state, e, shape, grown, created);
}

/// Serves the request from free pages, after merging what the taker has, and from new memory.
/// \throws backend_error, std::bad_alloc
template <typename Backend>
block* block_of_pages(pool_lock& lock, pool_state<Backend>& state, errand<Backend>& e) {
  idle_memory<Backend>& memory = state.memory;
  const run_shape shape = state.maps ? e.wanted.tight_if_large() : e.wanted.plenty;
  mapped_outlook now;
  if constexpr (is_virtual_backend_v<Backend>) {
    now = state.maps ? outlook(state) : now;
  }
  const bool large = state.maps && shape.capacity == 1;
  const bool careful = large && now.scarce();
  const std::size_t most_surplus = careful ? now.most_surplus() : page_heap::any_surplus;
  const auto cut = [&] { return memory.fresh_block(e.taker, e.wanted, shape, most_surplus); };
  if (block* b = cut()) {
    return b;
  }
  if (shape.capacity == 1 && state.idle_abounds.load(std::memory_order_relaxed)) {
    if (block* b = memory.merge_until(e.taker, cut)) {
      return b;
    }
  }
  memory.merge_own(e.taker);
  if (block* b = cut()) {
    return b;
  }
  if (careful) {
    if (block* b = scarce_block(lock, state, e, shape, most_surplus)) {
      return b;
    }
  }
  if (large && shape.pages >= large_request_pages && now.moves_before_growth() &&
      settle_own(lock, state, e)) {
    if (block* b = memory.fresh_block(e.taker, e.wanted, shape)) {
      return b;
    }
  }
  return block_of_growth(lock, state, e, shape);
}

}  // namespace pagesift
