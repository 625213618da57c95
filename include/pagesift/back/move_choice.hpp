// Which free granules an assembly moves: few, and little more than has to be filled.
#pragma once

#include <pagesift/back/granule.hpp>
#include <pagesift/back/page_run.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace pagesift {

/// A granule all of whose pages are quiet, and the run that they are in.
struct quiet_granule {
  granule* piece;
  page_run* run;
};

/// Sorts the granules that fill `fill` pages to the front of `candidates` and returns how many they
/// are. The largest that fit go first. What is left over is filled by new memory, at most
/// `most_new` pages, else by the smallest granule that is long enough: then the granules hold more
/// than `fill`. 0 where all together do not suffice, or no granule is needed.
[[nodiscard]] inline std::size_t choose_moves(std::vector<quiet_granule>& candidates,
                                              std::size_t fill, std::size_t most_new) noexcept {
  // Of equal ones those of short runs: a long run is worth more whole.
  std::sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return a.piece->pages != b.piece->pages ? a.piece->pages > b.piece->pages
                                            : a.run->pages < b.run->pages;
  });
  std::size_t left = fill;
  const auto chosen_end =
      std::stable_partition(candidates.begin(), candidates.end(), [&left](const auto& c) {
        const bool fits = c.piece->pages <= left;
        left -= fits ? c.piece->pages : 0;
        return fits;
      });
  auto chosen = static_cast<std::size_t>(chosen_end - candidates.begin());
  if (left <= most_new) {
    return chosen;
  }
  // All the rest are longer than what is left; the last one is the shortest.
  if (chosen_end == candidates.end()) {
    return 0;
  }
  std::iter_swap(chosen_end, candidates.end() - 1);
  std::size_t surplus = candidates[chosen++].piece->pages - left;
  for (std::size_t i = chosen - 1; i-- > 0;) {  // those that the surplus makes needless
    if (candidates[i].piece->pages <= surplus) {
      surplus -= candidates[i].piece->pages;
      std::swap(candidates[i], candidates[--chosen]);
    }
  }
  return chosen;
}

/// Pages of the first `count` granules.
[[nodiscard]] inline std::size_t pages_of(const std::vector<quiet_granule>& granules,
                                          std::size_t count) noexcept {
  std::size_t pages = 0;
  for (std::size_t i = 0; i < count; ++i) {
    pages += granules[i].piece->pages;
  }
  return pages;
}

}  // namespace pagesift
