// The memory that a page heap has: how spaces and granules come in, move and go.
#pragma once

#include <pagesift/back/assembly.hpp>
#include <pagesift/back/assembly_place.hpp>
#include <pagesift/back/granule.hpp>
#include <pagesift/back/move_choice.hpp>
#include <pagesift/back/page_run.hpp>
#include <pagesift/back/run_table.hpp>
#include <pagesift/core/reserve.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace pagesift {

/// Spaces, the runs that tile them and the granules behind their pages. Makes no backend call: the
/// pool makes them between two calls of this class, without the lock; what they refer to is taken
/// meanwhile, so that nobody else finds it. Not thread-safe.
class page_stock {
 public:
  static constexpr std::uint64_t any_batch = std::numeric_limits<std::uint64_t>::max();

  /// The bookkeeping of a space, made before its addresses are had so that nothing fails after.
  struct prepared_space {
    std::unique_ptr<page_space> space;
    granule* piece = nullptr;  ///< of an acquisition
    page_run* run = nullptr;
    std::size_t pages = 0;
  };

  /// For an acquisition of at most `pages` pages. \throws std::bad_alloc
  [[nodiscard]] prepared_space prepare(std::size_t pages) {
    granules_.reserve(1);
    granules_.map().reserve(pages);
    try {
      prepared_space prepared = prepare_tiles(pages);
      prepared.piece = &make_granule();
      return prepared;
    } catch (...) {
      granules_.map().unreserve(pages);
      throw;
    }
  }

  /// Puts an acquisition in as one quiet run; `acquired` is what the backend gave. One that does
  /// not start at a page boundary loses its first part and so one page; if that was all it had, it
  /// only waits for its release.
  void add(prepared_space prepared, void* acquired, std::size_t acquired_bytes) noexcept {
    page_space& space = *prepared.space;
    const std::size_t slack = page_slack(acquired);
    set_bounds(space, acquired, acquired_bytes, slack);
    space.whole = prepared.piece;
    granules_.map().cover(space.base, space.pages);
    granules_.map().unreserve(prepared.pages);
    runs_.map().cover(space.base, space.pages);
    page_run& run = insert_space(std::move(prepared));
    space.whole->pages = space.pages;
    insert_granule(*space.whole, space.base, run);
  }

  /// Forgets an acquisition whose memory did not come.
  void discard(prepared_space prepared) noexcept {
    granules_.map().unreserve(prepared.pages);
    granules_.recycle(*prepared.piece);
    discard_tiles(std::move(prepared));
  }

  /// For a reservation of addresses. \throws std::bad_alloc
  [[nodiscard]] prepared_space prepare_reservation() { return prepare_tiles(most_end_pages); }

  /// Puts a reservation in, at first one hole. It starts at a page boundary.
  void add_reservation(prepared_space prepared, void* base, std::size_t bytes) noexcept {
    page_space& space = *prepared.space;
    set_bounds(space, base, bytes, 0);
    runs_.map().cover(space.base, 1);
    runs_.map().cover(space.end() - page_bytes, 1);
    runs_.insert_hole(insert_space(std::move(prepared)));
  }
  void discard_reservation(prepared_space prepared) noexcept { discard_tiles(std::move(prepared)); }

  /// Takes a reservation out in which no memory is left; its addresses can be given back. Null
  /// where there is none.
  [[nodiscard]] std::unique_ptr<page_space> remove_empty_reservation() noexcept {
    for (auto& space : spaces_) {
      page_run* run =
          space->whole != nullptr || space->pages == 0 ? nullptr : &runs_.starting_at(space->base);
      if (run != nullptr && run->state == run_state::hole && run->pages == space->pages) {
        runs_.erase_hole(*run);
        return take_space(*run);
      }
    }
    return nullptr;
  }

  /// Bytes before the first page boundary at or after `p`.
  [[nodiscard]] static std::size_t page_slack(const void* p) noexcept {
    return (page_bytes - reinterpret_cast<std::uintptr_t>(p) % page_bytes) % page_bytes;
  }

  /// Works out how a run of `pages` pages for `stream` can be had: beside which free run, from
  /// which quiet granules moved there and how much new memory. If the verdict is `ready`, all of
  /// that is taken, and `finish` must follow. \throws std::bad_alloc; nothing is taken then
  [[nodiscard]] assembly assemble(stream_id stream, std::size_t pages, const assembly_terms& terms);

  /// Ends an assembly, successful or not: each piece becomes free pages where its memory stands
  /// now, the rest of the target and what is behind no granule any more become holes.
  void finish(const assembly& a) noexcept;

  /// Takes quiet granules out, the oldest first, until they have `pages` pages or no more are last
  /// taken from before batch `before`, so that their memory can be released. Returns a list by
  /// `next`, null where there is none; each is followed by `put_back` or `forget`.
  [[nodiscard]] granule* remove_oldest(std::size_t pages, std::uint64_t before) noexcept;

  /// Puts a granule back that could not be released; it is the youngest then.
  void put_back(granule& g) noexcept {
    g.last_touched = ++tick_;
    runs_.insert_free(*g.place, last_use{});
  }

  /// Forgets a granule that was released, and its space with it if that was an acquisition.
  void forget(granule& g) noexcept {
    page_run& place = *g.place;
    granules_.recycle(g);
    if (place.space->whole != nullptr) {
      (void)take_space(place);
    } else {
      runs_.insert_hole(place);
    }
  }

  /// How many granules there are.
  [[nodiscard]] std::size_t granule_count() const noexcept { return granules_.size(); }

  /// Pages of the quiet granules that could be moved or released as a whole.
  [[nodiscard]] std::size_t movable_pages(std::size_t smallest = 1) const noexcept {
    std::size_t pages = 0;
    for_each_quiet_granule(
        [&](granule& g, page_run&) { pages += g.pages >= smallest ? g.pages : 0; });
    return pages;
  }

  /// Starts a new batch: what is taken from now on counts for it.
  void next_batch() noexcept { ++batch_; }
  [[nodiscard]] std::uint64_t batch() const noexcept { return batch_; }

 protected:
  /// Notes that pages of a run are taken, or given back.
  void note_taken(const page_run& run) noexcept {
    granules_.for_each_in(run, [this](granule& g) { g.last_batch = batch_; });
  }
  void note_given(const page_run& run) noexcept {
    ++tick_;
    granules_.for_each_in(run, [this](granule& g) { g.last_touched = tick_; });
  }

  template <typename Function>
  void for_each_quiet_run(Function&& f) const {
    const free_run_index& free = runs_.free_runs();
    for (auto i = free.lower_bound(free_run_order::key{quiet_stream, 0});
         i != free.end() && (*i)->use.quiet(); ++i) {
      f(**i);
    }
  }

  /// Calls `f(granule&, page_run&)` for each granule that lies in a quiet run as a whole.
  template <typename Function>
  void for_each_quiet_granule(Function&& f) const {
    for_each_quiet_run([&](page_run& run) {
      if (run.space->whole != nullptr) {
        if (run.pages == run.space->pages) {
          f(*run.space->whole, run);
        }
        return;
      }
      granules_.for_each_in(run, [&](granule& g) {
        if (is_within(g, run)) {
          f(g, run);
        }
      });
    });
  }

  run_table runs_;
  granule_table granules_;
  std::vector<std::unique_ptr<page_space>> spaces_;  // ascending by base

 private:
  // A reservation has entries for its first and last page at first; each may need its own tables.
  static constexpr std::size_t most_end_pages = address_map<page_run>::table_pages + 1;

  [[nodiscard]] prepared_space prepare_tiles(std::size_t pages);
  void discard_tiles(prepared_space prepared) noexcept;
  [[nodiscard]] granule& make_granule();
  [[nodiscard]] page_run& insert_space(prepared_space prepared) noexcept;
  [[nodiscard]] std::unique_ptr<page_space> take_space(page_run& only) noexcept;

  static void set_bounds(page_space& space, void* acquired, std::size_t bytes,
                         std::size_t slack) noexcept {
    space.acquired = acquired;
    space.acquired_bytes = bytes;
    space.base = static_cast<std::byte*>(acquired) + slack;
    space.pages = (bytes - slack) / page_bytes;
  }

  /// Makes a taken run, which a granule has just come to stand behind, quiet.
  void insert_granule(granule& g, std::byte* start, page_run& run) noexcept {
    granules_.place(g, start);
    g.last_batch = batch_;
    g.last_touched = ++tick_;
    runs_.insert_free(run, last_use{});
  }

  void collect_moves(const assembly_place& place, std::size_t smallest) noexcept;
  [[nodiscard]] assembly assemble_at(const assembly_place& place, std::size_t moves,
                                     std::size_t new_pages, const assembly_terms& terms);
  void add_new_pieces(assembly& a, std::size_t pages, const assembly_terms& terms);
  void take_target(assembly& a, const assembly_place& place, std::size_t pages);
  void take_granules(std::size_t count);

  std::vector<quiet_granule> candidates_;  // room for all granules
  std::size_t prepared_ = 0;
  std::uint64_t tick_ = 0;
  std::uint64_t batch_ = 0;
};

inline page_stock::prepared_space page_stock::prepare_tiles(std::size_t pages) {
  prepared_space prepared{std::make_unique<page_space>(), nullptr, nullptr, pages};
  reserve_amortised(spaces_, spaces_.size() + prepared_ + 1);
  runs_.reserve(2);
  runs_.map().reserve(pages);
  prepared.run = &runs_.make();  // reserved
  ++prepared_;
  return prepared;
}

inline void page_stock::discard_tiles(prepared_space prepared) noexcept {
  runs_.map().unreserve(prepared.pages);
  runs_.recycle(*prepared.run);
  --prepared_;
}

inline granule& page_stock::make_granule() {
  reserve_amortised(candidates_, granules_.size() + 1);
  return granules_.make();
}

/// The space's one run, taken.
inline page_run& page_stock::insert_space(prepared_space prepared) noexcept {
  runs_.map().unreserve(prepared.pages);
  --prepared_;
  page_run& run = *prepared.run;
  runs_.tile(*prepared.space, run);
  const auto place =
      std::upper_bound(spaces_.begin(), spaces_.end(), prepared.space->base,
                       [](const std::byte* base, const auto& other) { return base < other->base; });
  spaces_.insert(place, std::move(prepared.space));
  return run;
}

/// Takes the space out that consists of one taken run.
inline std::unique_ptr<page_space> page_stock::take_space(page_run& only) noexcept {
  const auto place = std::find_if(spaces_.begin(), spaces_.end(),
                                  [&only](const auto& space) { return space.get() == only.space; });
  std::unique_ptr<page_space> space = std::move(*place);
  spaces_.erase(place);
  runs_.recycle(only);
  return space;
}

inline granule* page_stock::remove_oldest(std::size_t pages, std::uint64_t before) noexcept {
  candidates_.clear();
  for_each_quiet_granule([&](granule& g, page_run& run) {
    if (g.last_batch < before) {
      candidates_.push_back({&g, &run});
    }
  });
  std::sort(candidates_.begin(), candidates_.end(), [](const auto& a, const auto& b) {
    return a.piece->last_touched != b.piece->last_touched
               ? a.piece->last_touched < b.piece->last_touched
               : a.piece->start < b.piece->start;
  });
  std::size_t count = 0;
  for (std::size_t sum = 0; count < candidates_.size() && sum < pages; ++count) {
    sum += std::max<std::size_t>(candidates_[count].piece->pages, 1);
  }
  try {
    take_granules(count);
  } catch (const std::bad_alloc&) {
    return nullptr;  // the host is too short of memory to split runs: later
  }
  granule* first = nullptr;
  while (count != 0) {
    granule& g = *candidates_[--count].piece;
    g.next = first;
    first = &g;
  }
  return first;
}

/// Makes the first `count` candidates' pages taken runs of their own. \throws std::bad_alloc;
/// nothing is taken then
inline void page_stock::take_granules(std::size_t count) {
  runs_.reserve(2 * count);
  std::vector<quiet_granule>& c = candidates_;
  const auto end = c.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<quiet_granule> by_address(c.begin(), end);
  std::sort(by_address.begin(), by_address.end(),
            [](const auto& a, const auto& b) { return a.piece->start < b.piece->start; });
  for (std::size_t i = 0; i < count;) {
    page_run* const whole = by_address[i].run;
    page_run* rest = whole;
    for (runs_.erase_free(*whole); i < count && by_address[i].run == whole; ++i) {
      granule& g = *by_address[i].piece;
      if (rest->start != g.start) {
        const auto before = static_cast<std::size_t>(g.start - rest->start) / page_bytes;
        page_run& from_here = *runs_.cut_off(*rest, before);
        runs_.insert_free_alone(*rest, last_use{});
        rest = &from_here;
      }
      g.place = rest;
      rest = runs_.cut_off(*g.place, g.pages);
    }
    if (rest != nullptr) {
      runs_.insert_free_alone(*rest, last_use{});
    }
  }
}

inline void page_stock::collect_moves(const assembly_place& place, std::size_t smallest) noexcept {
  candidates_.clear();
  for_each_quiet_granule([&](granule& g, page_run& run) {
    const bool free_to_go = run.space->whole == nullptr && &run != place.below &&
                            &run != place.above && g.pages >= smallest;
    if (free_to_go) {
      candidates_.push_back({&g, &run});
    }
  });
}

inline assembly page_stock::assemble(stream_id stream, std::size_t pages,
                                     const assembly_terms& terms) {
  assembly none;
  std::size_t spare = 0;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const assembly_place place = place_finder{runs_, stream, pages, spare, terms.gap}.best();
    if (place.hole == nullptr) {
      none.verdict = assembly_verdict::no_addresses;
      return none;
    }
    collect_moves(place, terms.smallest_move);
    const std::size_t moves = choose_moves(candidates_, place.fill, terms.most_new);
    std::size_t moved_pages = 0;
    for (std::size_t i = 0; i < moves; ++i) {
      moved_pages += candidates_[i].piece->pages;
    }
    if (moved_pages + place.gap > place.hole->pages) {
      spare = moved_pages - place.fill;  // these granules need a longer hole
      continue;
    }
    const std::size_t missing = place.fill - std::min(moved_pages, place.fill);
    if (missing > terms.most_new) {
      return none;
    }
    const std::size_t wanted = std::min(terms.least_new, terms.most_new);
    const std::size_t room = place.hole->pages - moved_pages - place.gap;
    const std::size_t made = missing == 0 || place.above != nullptr
                                 ? missing
                                 : std::min(std::max(missing, wanted), room);
    return assemble_at(place, moves, made, terms);
  }
  none.verdict = assembly_verdict::no_addresses;
  return none;
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
  const std::size_t hole_end = place.at_upper_end ? place.hole->pages : place.gap + pages;
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
  const std::size_t below = place.at_upper_end ? rest->pages - pages : place.gap;
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
