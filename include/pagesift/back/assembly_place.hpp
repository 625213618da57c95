// Where an assembly goes: the hole whose free neighbours leave least to fill.
#pragma once

#include <pagesift/back/run_table.hpp>

#include <algorithm>
#include <cstddef>

namespace pagesift {

/// A hole, the free runs beside it that are used, and how much of the hole has to be filled, at
/// its lower end or at its upper one.
struct assembly_place {
  page_run* hole = nullptr;
  page_run* below = nullptr;
  page_run* above = nullptr;
  std::size_t fill = 0;
  bool at_upper_end = false;
};

/// Looks through the holes for a run of `pages` pages for `stream`.
class place_finder {
 public:
  /// \param spare pages that must be left in the hole beyond what has to be filled
  /// \param between whether a hole may be filled as a whole to join the runs on both sides
  place_finder(const run_table& runs, stream_id stream, std::size_t pages, std::size_t spare,
               bool between) noexcept
      : runs_{runs}, stream_{stream}, pages_{pages}, spare_{spare}, between_{between} {}

  /// The place with least to fill, the lowest of equals; `hole` is null where there is none.
  [[nodiscard]] assembly_place best() noexcept {
    for (page_run* hole : runs_.holes()) {
      page_run* below = usable(runs_.before(*hole));
      page_run* above = usable(runs_.after(*hole));
      consider({hole, below, nullptr, left(below), false});
      if (above != nullptr) {
        consider({hole, nullptr, above, left(above), true});
      }
      if (between_ && below != nullptr && above != nullptr && spare_ == 0 &&
          below->pages + hole->pages + above->pages >= pages_) {
        consider({hole, below, above, hole->pages, false});
      }
    }
    return best_;
  }

 private:
  [[nodiscard]] page_run* usable(page_run* run) const noexcept {
    return run_table::is_usable(run, stream_) ? run : nullptr;
  }

  [[nodiscard]] std::size_t left(const page_run* beside) const noexcept {
    const std::size_t there = beside == nullptr ? 0 : beside->pages;
    return there < pages_ ? pages_ - there : 1;
  }

  void consider(const assembly_place& place) noexcept {
    if (place.fill + spare_ <= place.hole->pages &&
        (best_.hole == nullptr || place.fill < best_.fill)) {
      best_ = place;
    }
  }

  const run_table& runs_;
  stream_id stream_;
  std::size_t pages_;
  std::size_t spare_;
  bool between_;
  assembly_place best_;
};

}  // namespace pagesift
