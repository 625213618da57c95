// The runs that tile all spaces: which run has which page, which are free, and how they are joined.
#pragma once

#include <pagesift/back/page_run.hpp>
#include <pagesift/core/reserve.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

namespace pagesift {

/// Keeps for each space its tiling by runs. The first and the last page of every run have an entry
/// in the address map; so have the others of a cut run of many blocks. Only cut runs are published.
///
/// Not thread-safe, but for `published`. Each change of state takes a run to or from `taken`.
class run_table {
 public:
  /// A run object with its index node, so that freeing it later needs no memory.
  /// \throws std::bad_alloc
  [[nodiscard]] page_run& make() {
    reserve(1);
    page_run& run = *spare_.back();
    spare_.pop_back();
    return run;
  }

  /// Makes sure that the next `count` calls of `make` do not throw. \throws std::bad_alloc
  void reserve(std::size_t count) {
    while (spare_.size() < count) {
      reserve_amortised(spare_, all_.size() + 1);
      free_run_index node_maker;
      page_run& run = all_.emplace_back();
      try {
        run.node = node_maker.extract(node_maker.insert(&run).first);
      } catch (...) {
        all_.pop_back();
        throw;
      }
      spare_.push_back(&run);
    }
  }

  /// Takes back a run that lies nowhere any more.
  void recycle(page_run& run) noexcept {
    run.space = nullptr;
    run.start = nullptr;
    run.pages = 0;
    run.use = {};
    run.state = run_state::taken;
    spare_.push_back(&run);
  }

  /// The tables for the addresses; see address_map. Only ends of runs need one, so those of a long
  /// hole may come when it is cut.
  [[nodiscard]] address_map<page_run>& map() noexcept { return map_; }

  /// Tiles a new space, whose ends were covered, with one run, which is `taken`.
  void tile(page_space& space, page_run& run) noexcept {
    run.space = &space;
    run.start = space.base;
    run.pages = space.pages;
    run.state = run_state::taken;
    mark_ends(run);
  }

  /// Shortens a taken run to its first `pages` pages; returns the rest, taken too, or null if there
  /// is none. \throws std::bad_alloc
  page_run* cut_off(page_run& run, std::size_t pages) {
    if (run.pages == pages) {
      return nullptr;
    }
    page_run& rest = make();
    rest.space = run.space;
    rest.start = run.start + pages * page_bytes;
    rest.pages = run.pages - pages;
    rest.use = run.use;
    run.pages = pages;
    mark_ends(run);
    mark_ends(rest);
    return &rest;
  }

  /// The same for a cut run of one block, which stays published. Precondition: it is longer.
  /// \throws std::bad_alloc
  page_run& cut_off_block(page_run& run, std::size_t pages) {
    page_run& rest = make();
    rest.space = run.space;
    rest.start = run.start + pages * page_bytes;
    rest.pages = run.pages - pages;
    run.pages = pages;
    mark_ends(rest);
    map_.publish(run.end() - page_bytes, run);
    return rest;
  }

  /// Makes a taken run free, joined with the neighbours of the same owner.
  void insert_free(page_run& run, last_use use) noexcept {
    for (page_run* other : {after(run), before(run)}) {
      if (is_free(other) && other->use.stream == use.stream) {
        use.freed = std::max(use.freed, other->use.freed);
        erase_free(*other);
        join(run, *other);
      }
    }
    insert_free_alone(run, use);
  }

  /// Makes a taken run free, leaving its neighbours as they are.
  void insert_free_alone(page_run& run, last_use use) noexcept {
    run.use = use;
    run.state = run_state::free;
    mark_ends(run);
    free_.insert(std::move(run.node));
  }

  void erase_free(page_run& run) noexcept {
    run.node = free_.extract(free_.find(&run));
    run.state = run_state::taken;
  }

  /// Makes a taken run a hole, joined with the holes beside it.
  void insert_hole(page_run& run) noexcept {
    for (page_run* other : {after(run), before(run)}) {
      if (other != nullptr && other->state == run_state::hole) {
        erase_hole(*other);
        join(run, *other);
      }
    }
    run.use = {};
    run.state = run_state::hole;
    mark_ends(run);
    holes_.insert(std::move(run.node));
  }

  void erase_hole(page_run& run) noexcept {
    run.node = holes_.extract(holes_.find(&run));
    run.state = run_state::taken;
  }

  /// Joins two taken neighbours into `run`.
  void join(page_run& run, page_run& other) noexcept {
    run.start = std::min(run.start, other.start);
    run.pages += other.pages;
    recycle(other);
    mark_ends(run);
  }

  /// Lets any thread find a run whose fields are all set.
  void publish(page_run& run) noexcept {
    run.state = run_state::cut;
    for_each_entry(run, [&](const std::byte* page) { map_.publish(page, run); });
  }

  /// Undoes `publish`; the run is taken. Its fields may be changed afterwards.
  void unpublish(page_run& run) noexcept {
    for_each_entry(run, [&](const std::byte* page) { map_.set(page, &run); });
    run.state = run_state::taken;
  }

  /// The cut run that has the page in which `p` lies, or null. Safe for any pointer.
  [[nodiscard]] const page_run* published(const void* p) const noexcept {
    return map_.published(p);
  }

  /// The run that starts at `start`, which is known to be the start of one.
  [[nodiscard]] page_run& starting_at(const std::byte* start) const noexcept {
    return *map_.at(start);
  }

  /// The neighbours of a run in its space, or null.
  [[nodiscard]] page_run* before(const page_run& run) const noexcept {
    return run.start == run.space->base ? nullptr : map_.at(run.start - page_bytes);
  }
  [[nodiscard]] page_run* after(const page_run& run) const noexcept {
    return run.end() == run.space->end() ? nullptr : map_.at(run.end());
  }

  [[nodiscard]] static bool is_free(const page_run* run) noexcept {
    return run != nullptr && run->state == run_state::free;
  }

  /// Whether it is a free run that `stream` may use now.
  [[nodiscard]] static bool is_usable(const page_run* run, stream_id stream) noexcept {
    return is_free(run) && (run->use.quiet() || run->use.stream == stream);
  }

  [[nodiscard]] const free_run_index& free_runs() const noexcept { return free_; }
  [[nodiscard]] const hole_index& holes() const noexcept { return holes_; }

 private:
  void mark_ends(page_run& run) noexcept {
    if (run.pages != 0) {
      map_.set(run.start, &run);
      map_.set(run.end() - page_bytes, &run);
    }
  }

  /// Calls `f(page)` for each page at which a cut run has an entry.
  template <typename Function>
  static void for_each_entry(const page_run& run, Function&& f) {
    const std::size_t last = run.pages - 1;
    const std::size_t step = run.capacity > 1 ? 1 : std::max<std::size_t>(last, 1);
    for (std::size_t page = 0; page <= last; page += step) {
      f(run.start + page * page_bytes);
    }
  }

  address_map<page_run> map_;
  free_run_index free_;
  hole_index holes_;
  std::deque<page_run> all_;
  std::vector<page_run*> spare_;
};

}  // namespace pagesift
