// How much memory a pool takes at a time, and in which pieces.
#pragma once

#include <pagesift/back/address_map.hpp>
#include <pagesift/core/bytes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace pagesift {

/// Pages of the next acquisition while a pool holds `held_pages`: as many again up to 32 MiB, then
/// a quarter of what is held, at most 8 GiB. A pool then reaches any size in few calls, and blocks
/// of changing sizes find room in few long ranges
/// (docs/decisions/0007-ranges-grow-with-the-pool.md).
[[nodiscard]] constexpr std::size_t next_range_pages(std::size_t held_pages) noexcept {
  constexpr std::size_t doubling = 32 * mebibyte / page_bytes;
  constexpr std::size_t most = 8 * gibibyte / page_bytes;
  const std::size_t doubled = std::max<std::size_t>(std::min(held_pages, doubling), 1);
  return std::min(std::max(doubled, held_pages / 4), most);
}

/// Granules of `initial_bytes`. At random, kernels read 32 MiB pieces in any order as fast as one
/// piece, 2 MiB pieces half as fast.
inline constexpr std::size_t usual_granule_pages = 32 * mebibyte / page_bytes;
inline constexpr std::size_t smallest_granule_pages = 4 * mebibyte / page_bytes;
inline constexpr std::size_t largest_granule_pages = 16 * gibibyte / page_bytes;

/// From so many pages on a request gets new memory of its own size, and old memory is moved for it.
inline constexpr std::size_t large_request_pages = 32 * mebibyte / page_bytes;

/// What a mapped pool looks at when it decides how to come by memory. Counts are pages.
struct mapped_outlook {
  std::size_t most = 0;          ///< that the pool may hold
  std::size_t held = 0;          ///< that it holds now
  std::size_t room = 0;          ///< that it may still create
  std::size_t in_use = 0;        ///< in blocks that users have
  std::size_t large_blocks = 0;  ///< how many runs are one block
  std::uint64_t moved = 0;       ///< in granules that were moved so far

  /// Whether less than a quarter of what the pool may hold is held.
  [[nodiscard]] constexpr bool is_early() const noexcept { return held < most / 4; }

  /// Whether so little is held that a large request makes memory for its whole class: a buffer that
  /// grows slowly then finds new memory once a class, not once a size.
  [[nodiscard]] constexpr bool is_plentiful() const noexcept { return held < most / 32; }

  /// Whether free memory is moved before more is taken: a pool that holds little and has much of it
  /// idle looks after others on the device. All it moves so is a few times what it holds, so that a
  /// program which does the same over and over comes to a state in which nothing moves.
  [[nodiscard]] constexpr bool moves_before_growth() const noexcept {
    return is_early() && held > usual_granule_pages && held - in_use > held / 18 &&
           moved < 6 * std::uint64_t{held};
  }

  /// The last sixteenth: what is free has to serve, so granules are kept from being cut.
  [[nodiscard]] constexpr bool scarce() const noexcept { return room < most / 16; }

  /// Pages that a large block may leave of a granule which would else be free as a whole, while
  /// memory is scarce. Were all blocks to leave as many, half of what is free would lie there.
  [[nodiscard]] constexpr std::size_t most_surplus() const noexcept {
    const std::size_t not_used = most > in_use ? most - in_use : 0;
    return not_used / (2 * large_blocks + 1) + 1;
  }

  /// Pages to create at least for a small request: as many again up to 32 MiB, then a part of what
  /// is held, no more than a sixteenth of the room. Early on slabs take a 256th, since they fill
  /// what is there, and large blocks, which leave gaps, a 64th, which saves them calls.
  [[nodiscard]] constexpr std::size_t least_new(bool slab) const noexcept {
    const std::size_t doubled = std::min(held, usual_granule_pages);
    return std::min(std::max(held / (!is_early() ? 128 : slab ? 256 : 64), doubled), room / 16);
  }
};

/// The granules of new memory: each half of what is left, between two bounds in pages.
struct granule_bounds {
  std::size_t smallest = 0;
  std::size_t largest = 0;
};

/// Granules for a request of `pages` pages. A call costs about 50 us up to 32 MiB and 110 us at 1
/// GiB, a move 50 us whatever the size: so the granules of the first quarter are as large as the
/// request allows, down to an eighth of it. Later they are an eighth of the mean large block, from
/// 16 to 256 MiB: memory that is free in pieces must then be movable.
[[nodiscard]] constexpr granule_bounds new_granules(const mapped_outlook& now,
                                                    std::size_t pages) noexcept {
  if (pages < large_request_pages) {
    return {largest_granule_pages, (now.is_early() ? 256 : 128) * mebibyte / page_bytes};
  }
  const std::size_t eighth = std::max(pages / 16, 2 * usual_granule_pages);
  if (now.is_early()) {
    return {eighth, largest_granule_pages};
  }
  constexpr std::size_t finest = 16 * mebibyte / page_bytes;
  constexpr std::size_t coarsest = 256 * mebibyte / page_bytes;
  const std::size_t mean = now.in_use / std::max<std::size_t>(now.large_blocks, 1);
  return {eighth, std::clamp(mean / 8, finest, coarsest)};
}

}  // namespace pagesift
