// Granules: the pieces of memory that are released on their own.
#pragma once

#include <pagesift/back/address_map.hpp>
#include <pagesift/back/page_run.hpp>
#include <pagesift/core/reserve.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace pagesift {

/// A piece of memory that was had from the backend in one call: an acquisition, or physical memory
/// mapped behind addresses of a reservation. Runs may span neighbouring granules of one space.
struct granule {
  std::byte* start = nullptr;
  std::size_t pages = 0;
  std::uint64_t last_touched = 0;  ///< the heap's tick when a part of it was last given back
  std::uint64_t last_batch = 0;    ///< the batch in which a part of it was last taken
  std::uint64_t physical = 0;      ///< the backend's name of it; 0 for an acquisition
  page_run* place = nullptr;       ///< while it is on its way: its pages, a taken run of their own
  granule* next = nullptr;         ///< while it is on its way: the next one of the same journey

  [[nodiscard]] std::byte* end() const noexcept { return start + bytes(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return pages * page_bytes; }
};

/// All granules of a heap, and which of them holds which page. Not thread-safe.
class granule_table {
 public:
  /// A granule that lies nowhere yet. \throws std::bad_alloc
  [[nodiscard]] granule& make() {
    reserve(1);
    granule& g = *spare_.back();
    spare_.pop_back();
    return g;
  }

  /// Makes sure that the next `count` calls of `make` do not throw. \throws std::bad_alloc
  void reserve(std::size_t count) {
    while (spare_.size() < count) {
      reserve_amortised(spare_, all_.size() + 1);
      spare_.push_back(&all_.emplace_back());
    }
  }

  /// Takes back a granule that lies nowhere.
  void recycle(granule& g) noexcept {
    g = granule{};
    spare_.push_back(&g);
  }

  /// The tables for the addresses; see address_map.
  [[nodiscard]] address_map<granule>& map() noexcept { return map_; }

  /// The granule that has the page, which has memory.
  [[nodiscard]] granule& at(const std::byte* page) const noexcept { return *map_.at(page); }

  /// Says that the granule lies at `start` from now on. Precondition: its pages were covered.
  void place(granule& g, std::byte* start) noexcept {
    g.start = start;
    for (std::byte* page = start; page != g.end(); page += page_bytes) {
      map_.set(page, &g);
    }
  }

  /// Calls `f(granule&)` for each granule that has a page in `run`, in ascending order of address.
  /// Precondition: every page of the run has memory.
  template <typename Function>
  void for_each_in(const page_run& run, Function&& f) const {
    for (std::byte* page = run.start; page != run.end();) {
      granule& g = *map_.at(page);
      page = g.end() < run.end() ? g.end() : run.end();
      f(g);
    }
  }

  /// How many granules lie somewhere or are about to.
  [[nodiscard]] std::size_t size() const noexcept { return all_.size() - spare_.size(); }

 private:
  address_map<granule> map_;
  std::deque<granule> all_;
  std::vector<granule*> spare_;
};

/// Whether all pages of the granule belong to the run.
[[nodiscard]] inline bool is_within(const granule& g, const page_run& run) noexcept {
  return g.start >= run.start && g.end() <= run.end();
}

}  // namespace pagesift
