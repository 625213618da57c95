// Granules that are free as a whole and quiet: which there are, and how they go.
#pragma once

#include <pagesift/back/page_spaces.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <vector>

namespace pagesift {

/// Spaces whose quiet granules can be taken out. Not thread-safe.
class quiet_granules : public page_spaces {
 public:
  static constexpr std::uint64_t any_batch = std::numeric_limits<std::uint64_t>::max();

  /// Takes quiet granules out, the oldest first, until they have `pages` pages or no more are last
  /// taken from before batch `before`, so that their memory can be released. Returns a list by
  /// `next`, null where there is none; each is followed by `put_back` or `forget`.
  [[nodiscard]] granule* remove_oldest(std::size_t pages, std::uint64_t before) noexcept;

  /// Puts a granule back that could not be released; it is the youngest then.
  void put_back(granule& g) noexcept {
    if (g.place->space->whole != nullptr) {
      take_up_again(*g.place);
    }
    g.last_touched = ++tick_;
    runs_.insert_free(*g.place, last_use{});
  }

  /// Forgets a granule that was released, and its space with it if that was an acquisition.
  void forget(granule& g) noexcept {
    page_run& place = *g.place;
    granules_.recycle(g);
    if (place.space->whole != nullptr) {
      drop(place);
    } else {
      runs_.insert_hole(place);
    }
  }

  /// Pages of the quiet granules that could be moved or released as a whole.
  [[nodiscard]] std::size_t movable_pages() const noexcept {
    std::size_t pages = 0;
    for_each_quiet_granule([&](granule& g, page_run&) { pages += g.pages; });
    return pages;
  }

 protected:
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

  /// Makes the first `count` candidates' pages taken runs of their own. \throws std::bad_alloc;
  /// nothing is taken then
  void take_granules(std::size_t count);

  /// Takes one granule out, to be released. \throws std::bad_alloc
  [[nodiscard]] granule* take_granule(quiet_granule one) {
    candidates_.assign(1, one);
    take_granules(1);
    one.piece->next = nullptr;
    return one.piece;
  }
};

inline granule* quiet_granules::remove_oldest(std::size_t pages, std::uint64_t before) noexcept {
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
    if (g.place->space->whole != nullptr) {
      set_aside(*g.place);
    }
    g.next = first;
    first = &g;
  }
  return first;
}

inline void quiet_granules::take_granules(std::size_t count) {
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
