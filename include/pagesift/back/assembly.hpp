// An assembly: memory on its way to one stretch of addresses, so that a run becomes long enough.
#pragma once

#include <pagesift/back/granule.hpp>
#include <pagesift/back/page_run.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace pagesift {

/// What an assembly may take. Counts are pages.
struct assembly_terms {
  std::size_t most_new = 0;   ///< of new memory, at most
  std::size_t least_new = 0;  ///< if any new memory, then so much where there is room for it
  std::size_t extra_new = 0;  ///< if any new memory, then so much beyond what is missing
  std::size_t smallest_piece = 1;
  std::size_t largest_piece = 1;  ///< of new memory
  bool moves = true;              ///< whether granules may come from elsewhere
  /// Of moved granules, so much may be beyond what has to be filled.
  std::size_t most_surplus = std::numeric_limits<std::size_t>::max();
};

/// Pages of the next granule when `left` pages of new memory are still to come: half of them. So a
/// block that is put where a longer one was leaves memory over in granules most of which are free
/// as a whole.
[[nodiscard]] constexpr std::size_t next_piece(std::size_t left,
                                               const assembly_terms& terms) noexcept {
  const std::size_t tapered = std::max((left + 1) / 2, terms.smallest_piece);
  return std::min({left, tapered, terms.largest_piece});
}

/// `no_addresses`: there would be memory, but no hole is long enough. `too_coarse`: it would have
/// more surplus than the terms allow, unless the granule `coarse` is made anew in parts.
enum class assembly_verdict : unsigned char { ready, no_memory, no_addresses, too_coarse };

/// Where the memory of a granule stands: the backend's calls move it.
enum class piece_state : unsigned char { nowhere, at_origin, at_target };

/// One granule of an assembly, moved or new.
struct assembly_piece {
  granule* piece = nullptr;  ///< of a moved one `start` is where it came from
  page_run* part = nullptr;  ///< where it is to go: taken, as long as the granule, no memory yet
  bool is_new = false;
  piece_state state = piece_state::nowhere;
};

/// Nobody else finds what an assembly refers to, so its backend calls are made without the lock.
struct assembly {
  assembly_verdict verdict = assembly_verdict::no_memory;
  std::vector<assembly_piece> pieces;  ///< in ascending order of target
  page_run* below = nullptr;           ///< the free run that ends where they begin, if it is used
  page_run* above = nullptr;           ///< the free run that begins where they end, if it is used
  granule* coarse = nullptr;           ///< taken out, if the verdict says so: to be released

  [[nodiscard]] std::size_t new_pages() const noexcept {
    std::size_t pages = 0;
    for (const assembly_piece& p : pieces) {
      pages += p.is_new ? p.piece->pages : 0;
    }
    return pages;
  }
};

}  // namespace pagesift
