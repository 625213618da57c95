// How memory comes to one stretch of addresses, new or moved, so that a run becomes long enough.
#pragma once

#include <pagesift/back/assembly.hpp>
#include <pagesift/back/assembly_place.hpp>
#include <pagesift/back/quiet_granules.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pagesift {

/// Spaces whose memory can be put together. The backend calls of an assembly are made between
/// `assemble` and `finish`, without the lock. Not thread-safe.
class page_stock : public quiet_granules {
 public:
  /// Works out how a run of `pages` pages for `stream` can be had: beside which free run, from
  /// which quiet granules moved there and how much new memory. If the verdict is `ready`, all of
  /// that is taken, and `finish` must follow. \throws std::bad_alloc; nothing is taken then
  [[nodiscard]] assembly assemble(stream_id stream, std::size_t pages, const assembly_terms& terms);

  /// Ends an assembly, successful or not: each piece becomes free pages where its memory stands
  /// now, the rest of the target and what is behind no granule any more become holes.
  void finish(const assembly& a) noexcept;

  /// Pages of granules that were moved so far.
  [[nodiscard]] std::uint64_t moved_pages() const noexcept { return moved_pages_; }

 private:
  void collect_moves(const assembly_place& place) noexcept;
  [[nodiscard]] assembly without(std::size_t moves, std::size_t surplus);
  [[nodiscard]] assembly assemble_at(const assembly_place& place, std::size_t moves,
                                     std::size_t new_pages, const assembly_terms& terms);
  void add_new_pieces(assembly& a, std::size_t pages, const assembly_terms& terms);
  void take_target(assembly& a, const assembly_place& place, std::size_t pages);

  std::uint64_t moved_pages_ = 0;
};

inline void page_stock::collect_moves(const assembly_place& place) noexcept {
  candidates_.clear();
  for_each_quiet_granule([&](granule& g, page_run& run) {
    if (run.space->whole == nullptr && &run != place.below && &run != place.above) {
      candidates_.push_back({&g, &run});
    }
  });
}

inline assembly page_stock::assemble(stream_id stream, std::size_t pages,
                                     const assembly_terms& terms) {
  assembly none;
  std::size_t spare = 0;
  bool between = true;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const assembly_place place = place_finder{runs_, stream, pages, spare, between}.best();
    if (place.hole == nullptr) {
      break;
    }
    std::size_t moves = 0;
    if (terms.moves) {
      collect_moves(place);
      moves = choose_moves(candidates_, place.fill, terms.most_new);
    }
    const std::size_t moved_pages = pages_of(candidates_, moves);
    const std::size_t missing = place.fill - std::min(moved_pages, place.fill);
    if (missing > terms.most_new && place.below != nullptr && place.above != nullptr) {
      between = false;  // a whole hole may be more than is needed; beside one run it is not
      continue;
    }
    if (missing > terms.most_new) {
      return none;
    }
    if (moved_pages > place.fill && moved_pages - place.fill > terms.most_surplus) {
      return without(moves, moved_pages - place.fill);
    }
    if (moved_pages > place.hole->pages) {
      spare = moved_pages - place.fill;  // these granules need a longer hole
      continue;
    }
    const std::size_t wanted =
        std::min(std::max(terms.least_new, missing + terms.extra_new), terms.most_new);
    const std::size_t room = place.hole->pages - moved_pages;
    const std::size_t made = missing == 0 || place.above != nullptr
                                 ? missing
                                 : std::min(std::max(missing, wanted), room);
    return assemble_at(place, moves, made, terms);
  }
  none.verdict = assembly_verdict::no_addresses;
  return none;
}

/// Takes out the smallest of the chosen granules that is longer than the surplus of all. Its memory
/// made anew is enough, and something is left.
inline assembly page_stock::without(std::size_t moves, std::size_t surplus) {
  const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(moves);
  const auto smallest =
      std::min_element(candidates_.begin(), end, [surplus](const auto& a, const auto& b) {
        const bool a_serves = a.piece->pages > surplus;
        const bool b_serves = b.piece->pages > surplus;
        return a_serves != b_serves ? a_serves : a.piece->pages < b.piece->pages;
      });
  assembly a;
  a.coarse = take_granule(*smallest);
  a.verdict = assembly_verdict::too_coarse;
  return a;
}

inline assembly page_stock::assemble_at(const assembly_place& place, std::size_t moves,
                                        std::size_t new_pages, const assembly_terms& terms) {
  assembly a;
  a.pieces.reserve(moves);
  std::size_t pages = new_pages;
  for (std::size_t i = 0; i < moves; ++i) {
    a.pieces.push_back({candidates_[i].piece, nullptr, false, piece_state::at_origin});
    pages += candidates_[i].piece->pages;
  }
  const std::size_t hole_end = place.at_upper_end ? place.hole->pages : pages;
  std::byte* const start = place.hole->start + (hole_end - pages) * page_bytes;
  // The pages beside the target may become ends of holes.
  runs_.map().reserve_and_cover(start, pages);
  runs_.map().reserve_and_cover(hole_end < place.hole->pages ? start + pages * page_bytes : start,
                                1);
  runs_.map().reserve_and_cover(start == place.hole->start ? start : start - page_bytes, 1);
  granules_.map().reserve_and_cover(start, pages);
  add_new_pieces(a, new_pages, terms);
  // From here on only the runs may be short, and then no new granule is kept.
  try {
    runs_.reserve(2 * moves + a.pieces.size() + 2);
    take_granules(moves);
  } catch (...) {
    for (const assembly_piece& p : a.pieces) {
      if (p.is_new) {
        granules_.recycle(*p.piece);
      }
    }
    throw;
  }
  take_target(a, place, pages);
  a.verdict = assembly_verdict::ready;
  return a;
}

/// Adds granules of new memory, `pages` pages in all.
inline void page_stock::add_new_pieces(assembly& a, std::size_t pages,
                                       const assembly_terms& terms) {
  std::size_t count = 0;
  for (std::size_t left = pages; left != 0; ++count) {
    left -= next_piece(left, terms);
  }
  a.pieces.reserve(a.pieces.size() + count);
  granules_.reserve(count);
  reserve_amortised(candidates_, granules_.size() + count);
  for (; pages != 0; pages -= a.pieces.back().piece->pages) {
    granule& g = granules_.make();  // reserved
    g.pages = next_piece(pages, terms);
    a.pieces.push_back({&g, nullptr, true, piece_state::nowhere});
  }
}

/// Takes the pieces' addresses out of their hole, and the free runs beside them. Nothing fails:
/// runs and tables were reserved.
inline void page_stock::take_target(assembly& a, const assembly_place& place, std::size_t pages) {
  page_run* rest = place.hole;
  runs_.erase_hole(*rest);
  const std::size_t below = place.at_upper_end ? rest->pages - pages : 0;
  if (below != 0) {
    page_run* const lower = rest;
    rest = runs_.cut_off(*lower, below);
    runs_.insert_hole(*lower);
  }
  for (assembly_piece& p : a.pieces) {
    p.part = rest;
    rest = runs_.cut_off(*p.part, p.piece->pages);
  }
  if (rest != nullptr) {
    runs_.insert_hole(*rest);
  }
  a.below = place.below;
  a.above = place.above;
  for (page_run* beside : {a.below, a.above}) {
    if (beside != nullptr) {
      runs_.erase_free(*beside);
    }
  }
}

inline void page_stock::finish(const assembly& a) noexcept {
  for (const assembly_piece& p : a.pieces) {
    granule& g = *p.piece;
    page_run* const origin = p.is_new ? nullptr : g.place;
    if (p.state == piece_state::at_target) {
      moved_pages_ += origin == nullptr ? 0 : g.pages;
      insert_granule(g, p.part->start, *p.part);
    } else {
      runs_.insert_hole(*p.part);
    }
    if (p.state == piece_state::at_origin) {
      runs_.insert_free(*origin, last_use{});
    } else if (origin != nullptr) {
      runs_.insert_hole(*origin);
    }
    if (p.state == piece_state::nowhere) {
      granules_.recycle(g);
    }
  }
  for (page_run* beside : {a.below, a.above}) {
    if (beside != nullptr) {
      runs_.insert_free(*beside, beside->use);
    }
  }
}

}  // namespace pagesift
