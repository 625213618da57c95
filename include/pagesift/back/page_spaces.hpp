// The memory that a page heap has: how spaces and granules come in and go.
#pragma once

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
#include <new>
#include <utility>
#include <vector>

namespace pagesift {

/// Spaces, the runs that tile them and the granules behind their pages. Makes no backend call: the
/// pool makes them between two calls of this class, without the lock; what they refer to is taken
/// meanwhile, so that nobody else finds it. Not thread-safe.
class page_spaces {
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

  void take_granules(std::size_t count);

  /// Makes a taken run, which a granule has just come to stand behind, quiet.
  void insert_granule(granule& g, std::byte* start, page_run& run) noexcept {
    granules_.place(g, start);
    g.last_batch = batch_;
    g.last_touched = ++tick_;
    runs_.insert_free(run, last_use{});
  }

  run_table runs_;
  granule_table granules_;
  std::vector<quiet_granule> candidates_;            // room for all granules
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

  std::size_t prepared_ = 0;
  std::uint64_t tick_ = 0;
  std::uint64_t batch_ = 0;
};

inline page_spaces::prepared_space page_spaces::prepare_tiles(std::size_t pages) {
  prepared_space prepared{std::make_unique<page_space>(), nullptr, nullptr, pages};
  reserve_amortised(spaces_, spaces_.size() + prepared_ + 1);
  runs_.reserve(2);
  runs_.map().reserve(pages);
  prepared.run = &runs_.make();  // reserved
  ++prepared_;
  return prepared;
}

inline void page_spaces::discard_tiles(prepared_space prepared) noexcept {
  runs_.map().unreserve(prepared.pages);
  runs_.recycle(*prepared.run);
  --prepared_;
}

inline granule& page_spaces::make_granule() {
  reserve_amortised(candidates_, granules_.size() + 1);
  return granules_.make();
}

/// The space's one run, taken.
inline page_run& page_spaces::insert_space(prepared_space prepared) noexcept {
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
inline std::unique_ptr<page_space> page_spaces::take_space(page_run& only) noexcept {
  const auto place = std::find_if(spaces_.begin(), spaces_.end(),
                                  [&only](const auto& space) { return space.get() == only.space; });
  std::unique_ptr<page_space> space = std::move(*place);
  spaces_.erase(place);
  runs_.recycle(only);
  return space;
}

inline granule* page_spaces::remove_oldest(std::size_t pages, std::uint64_t before) noexcept {
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
inline void page_spaces::take_granules(std::size_t count) {
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

}  // namespace pagesift
