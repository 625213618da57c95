// The spaces of a page heap, and the granules behind their pages: how they come in.
#pragma once

#include <pagesift/back/granule.hpp>
#include <pagesift/back/move_choice.hpp>
#include <pagesift/back/page_run.hpp>
#include <pagesift/back/run_table.hpp>
#include <pagesift/core/reserve.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace pagesift {

/// Spaces, the runs that tile them and the granules behind their pages. Makes no backend call: the
/// pool makes them between two calls of this class, without the lock; what they refer to is taken
/// meanwhile, so that nobody else finds it. Not thread-safe.
class page_spaces {
 public:
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

  /// How many granules there are.
  [[nodiscard]] std::size_t granule_count() const noexcept { return granules_.size(); }

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

  /// Makes a taken run, which a granule has just come to stand behind, quiet.
  void insert_granule(granule& g, std::byte* start, page_run& run) noexcept {
    granules_.place(g, start);
    g.last_batch = batch_;
    g.last_touched = ++tick_;
    runs_.insert_free(run, last_use{});
  }

  /// Takes the space out that consists of one taken run.
  [[nodiscard]] std::unique_ptr<page_space> take_space(page_run& only) noexcept;

  /// Sets an acquisition aside that consists of one taken run, before it is released: from then on
  /// the backend may give its addresses to another. Followed by `take_up_again` or `drop`.
  void set_aside(const page_run& only) noexcept {
    const auto place = find_space(spaces_, only);
    leaving_.push_back(std::move(*place));  // `prepare` made room
    spaces_.erase(place);
  }
  void take_up_again(const page_run& only) noexcept {
    const auto place = find_space(leaving_, only);
    insert_by_address(std::move(*place));
    leaving_.erase(place);
  }
  void drop(page_run& only) noexcept {
    leaving_.erase(find_space(leaving_, only));
    runs_.recycle(only);
  }

  run_table runs_;
  granule_table granules_;
  std::vector<quiet_granule> candidates_;            // room for all granules
  std::vector<std::unique_ptr<page_space>> spaces_;  // ascending by base
  std::uint64_t tick_ = 0;                           // how often pages were given back
  std::uint64_t batch_ = 0;

 private:
  using space_list = std::vector<std::unique_ptr<page_space>>;

  [[nodiscard]] static space_list::iterator find_space(space_list& list,
                                                       const page_run& run) noexcept {
    return std::find_if(list.begin(), list.end(),
                        [&run](const auto& space) { return space.get() == run.space; });
  }

  void insert_by_address(std::unique_ptr<page_space> space) noexcept {
    const auto place = std::upper_bound(
        spaces_.begin(), spaces_.end(), space->base,
        [](const std::byte* base, const auto& other) { return base < other->base; });
    spaces_.insert(place, std::move(space));
  }

  // A reservation has entries for its first and last page at first; each may need its own tables.
  static constexpr std::size_t most_end_pages = address_map<page_run>::table_pages + 1;

  [[nodiscard]] prepared_space prepare_tiles(std::size_t pages);
  void discard_tiles(prepared_space prepared) noexcept;
  [[nodiscard]] granule& make_granule();
  [[nodiscard]] page_run& insert_space(prepared_space prepared) noexcept;

  static void set_bounds(page_space& space, void* acquired, std::size_t bytes,
                         std::size_t slack) noexcept {
    space.acquired = acquired;
    space.acquired_bytes = bytes;
    space.base = static_cast<std::byte*>(acquired) + slack;
    space.pages = (bytes - slack) / page_bytes;
  }

  space_list leaving_;  // room for all spaces
  std::size_t prepared_ = 0;
};

inline page_spaces::prepared_space page_spaces::prepare_tiles(std::size_t pages) {
  prepared_space prepared{std::make_unique<page_space>(), nullptr, nullptr, pages};
  const std::size_t spaces = spaces_.size() + leaving_.size() + prepared_ + 1;
  reserve_amortised(spaces_, spaces);
  reserve_amortised(leaving_, spaces);
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
  insert_by_address(std::move(prepared.space));
  return run;
}

inline std::unique_ptr<page_space> page_spaces::take_space(page_run& only) noexcept {
  const auto place = find_space(spaces_, only);
  std::unique_ptr<page_space> space = std::move(*place);
  spaces_.erase(place);
  runs_.recycle(only);
  return space;
}

}  // namespace pagesift
