// A request, worked out once: its class and the runs that can serve it.
#pragma once

#include <pagesift/back/page_run.hpp>
#include <pagesift/core/size_class.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace pagesift {

/// A run and how it is cut.
struct run_shape {
  std::size_t pages = 0;
  std::size_t block_bytes = 0;
  std::size_t capacity = 0;
};

/// Capacity of a block of class `index` where near sizes share blocks: one with a run of its own
/// has whole pages.
[[nodiscard]] constexpr std::size_t plentiful_bytes(class_index index) noexcept {
  const std::size_t block = block_bytes(index);
  return block <= max_slab_block_bytes ? block : divide_round_up(block, page_bytes) * page_bytes;
}

/// For each class, where an idle block made for it waits.
struct waiting_classes {
  std::array<std::uint16_t, class_count> of{};
};
[[nodiscard]] constexpr waiting_classes make_waiting_classes() noexcept {
  waiting_classes waiting;
  for (class_index i = 0; i < class_count; ++i) {
    waiting.of[i] = static_cast<std::uint16_t>(waiting_class(plentiful_bytes(i)));
  }
  return waiting;
}
inline constexpr waiting_classes waiting_for = make_waiting_classes();

/// Whether blocks that wait in class `index` have a run each.
[[nodiscard]] constexpr bool has_own_run(class_index index) noexcept {
  return index > class_of(max_slab_block_bytes);
}

/// Whole pages that hold `bytes` bytes; at least one.
[[nodiscard]] constexpr std::size_t pages_for(std::size_t bytes) noexcept {
  return divide_round_up(bytes == 0 ? 1 : bytes, page_bytes);
}

/// What a caller asked for.
struct request {
  std::size_t bytes = 0;
  std::size_t alignment = default_alignment;
  class_index index = 0;    ///< its size class
  class_index waiting = 0;  ///< where an idle block made for it waits
  run_shape plenty;         ///< while memory is plentiful: near sizes share blocks
  run_shape tight;          ///< in a shortage: the fewest pages that serve

  /// While memory is neither short nor plentiful: slabs as they are best, large blocks without
  /// slack.
  [[nodiscard]] const run_shape& tight_if_large() const noexcept {
    return plenty.capacity == 1 ? tight : plenty;
  }
};

/// \throws size_overflow, invalid_alignment
[[nodiscard]] inline request make_request(std::size_t bytes, std::size_t alignment) {
  request r;
  r.bytes = bytes;
  r.alignment = alignment;
  r.index = class_of(bytes, alignment);
  const std::size_t block = block_bytes(r.index);
  const auto whole = [](std::size_t pages) { return run_shape{pages, pages * page_bytes, 1}; };
  const auto slab = [block](std::size_t pages) {
    return run_shape{pages, block, pages * page_bytes / block};
  };
  r.plenty = block <= max_slab_block_bytes ? slab(slab_pages(block))
                                           : whole(divide_round_up(block, page_bytes));
  r.tight = 2 * block <= page_bytes ? slab(1) : whole(pages_for(bytes));
  r.waiting = waiting_for.of[r.index];
  return r;
}

}  // namespace pagesift
