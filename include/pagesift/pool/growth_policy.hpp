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
inline constexpr std::size_t largest_granule_pages = 256 * mebibyte / page_bytes;

/// Pages of new memory to map at least, while `held_pages` are held: as many again up to 32 MiB,
/// then a sixteenth of what is held, at most 256 MiB. New memory lies beside what there is, so that
/// much more than is asked for is never needed.
[[nodiscard]] constexpr std::size_t next_mapping_pages(std::size_t held_pages) noexcept {
  const std::size_t doubled = std::max<std::size_t>(std::min(held_pages, usual_granule_pages), 1);
  return std::min(std::max(doubled, held_pages / 16), largest_granule_pages);
}

/// Pages of the largest granule to create while the pool may still take `room_pages`. A call costs
/// about 50 us whatever its size, so they are large while there is much room; when there is
/// little, memory that is free in pieces must be movable, so they are smaller.
[[nodiscard]] constexpr std::size_t granule_pages(std::size_t room_pages) noexcept {
  constexpr std::size_t pieces_of_room = 512;
  std::size_t pages = usual_granule_pages;
  while (pages < largest_granule_pages && 2 * pages * pieces_of_room <= room_pages) {
    pages *= 2;
  }
  return pages;
}

}  // namespace pagesift
