// How much memory a pool takes at a time, and in which pieces.
#pragma once

#include <pagesift/back/address_map.hpp>
#include <pagesift/core/bytes.hpp>

#include <algorithm>
#include <cstddef>

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

/// Granules of `initial_bytes`, and the smallest that kernels are to meet often: at random reads 32
/// MiB pieces in any order are as fast as one piece, 2 MiB pieces half as fast.
inline constexpr std::size_t usual_granule_pages = 32 * mebibyte / page_bytes;
inline constexpr std::size_t smallest_granule_pages = 4 * mebibyte / page_bytes;
inline constexpr std::size_t largest_granule_pages = 64 * mebibyte / page_bytes;

/// Whether at most a sixteenth of what the pool may hold is held.
[[nodiscard]] constexpr bool is_first_sixteenth(std::size_t held_pages,
                                                std::size_t room_pages) noexcept {
  return held_pages <= room_pages / 15;
}

/// Pages of new memory to map at least for a request of `pages` pages, while `held_pages` are held
/// and `room_pages` may still be: as many again up to 32 MiB, then a sixteenth of what is held, at
/// most 64 MiB. Once a sixteenth of the device is held, a large request gets granules of its own
/// size, so that its memory can be moved when it is free.
[[nodiscard]] constexpr std::size_t least_mapping_pages(std::size_t held_pages,
                                                        std::size_t room_pages,
                                                        std::size_t pages) noexcept {
  if (!is_first_sixteenth(held_pages, room_pages)) {
    return pages < usual_granule_pages ? usual_granule_pages : 0;
  }
  const std::size_t doubled = std::max<std::size_t>(std::min(held_pages, usual_granule_pages), 1);
  return std::min(std::max(doubled, held_pages / 16), largest_granule_pages);
}

/// Pages of the largest granule to create while the pool may still take `room_pages` and holds
/// `held_pages`. A call costs about 50 us whatever its size, so the first sixteenth comes in large
/// ones. Later, memory that is free in pieces must be movable: the less room, the smaller.
[[nodiscard]] constexpr std::size_t granule_pages(std::size_t held_pages,
                                                  std::size_t room_pages) noexcept {
  constexpr std::size_t pieces_of_room = 4096;
  if (is_first_sixteenth(held_pages, room_pages)) {
    return largest_granule_pages;
  }
  std::size_t pages = smallest_granule_pages;
  while (pages < usual_granule_pages && 2 * pages * pieces_of_room <= room_pages) {
    pages *= 2;
  }
  return pages;
}

/// Pages of the smallest granule to create: in the first sixteenth they are not tapered.
[[nodiscard]] constexpr std::size_t smallest_piece_pages(std::size_t held_pages,
                                                         std::size_t room_pages) noexcept {
  return is_first_sixteenth(held_pages, room_pages) ? largest_granule_pages
                                                    : smallest_granule_pages;
}

}  // namespace pagesift
