// The page heap: free runs of pages, split and coalesced on the host, and the map from an address
// to its block. It makes no backend call; the pool brings memory in and takes it out.
#pragma once

#include <pagesift/back/granule.hpp>
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

/// Runs of pages of all spaces. Not thread-safe, but for `find`: the pool's lock guards it.
///
/// A free run is quiet, or belongs to the stream that used it last until that use is complete.
/// Neighbours of one owner are one run. Host memory for the bookkeeping is asked for only where
/// the docstring says so; nothing that gives memory back needs any.
class page_heap {
 public:
  /// The bookkeeping of an acquisition, made before its memory is so that nothing fails after.
  struct prepared_range {
    std::unique_ptr<page_space> space;
    granule* piece = nullptr;
    page_run* run = nullptr;
    std::size_t pages = 0;
  };

  /// For an acquisition of at most `pages` pages. \throws std::bad_alloc
  [[nodiscard]] prepared_range prepare(std::size_t pages) {
    prepared_range prepared{std::make_unique<page_space>(), nullptr, nullptr, pages};
    reserve_for(pages);
    prepared.piece = &granules_.make();  // reserved, as is the run
    prepared.run = &runs_.make();
    ++prepared_;
    return prepared;
  }

  /// Puts a prepared range in as one quiet run; `acquired` is what the backend gave. A range that
  /// does not start at a page boundary loses its first part and so one page; if that was all it
  /// had, it only waits for its release.
  void add(prepared_range prepared, void* acquired, std::size_t acquired_bytes) noexcept {
    page_space& space = *prepared.space;
    const std::size_t slack = page_slack(acquired);
    space.acquired = acquired;
    space.acquired_bytes = acquired_bytes;
    space.base = static_cast<std::byte*>(acquired) + slack;
    space.pages = (acquired_bytes - slack) / page_bytes;
    space.whole = prepared.piece;
    granules_.cover(space.base, space.pages);
    runs_.tile(space, *prepared.run);
    forget_promise(prepared.pages);
    insert_space(std::move(prepared.space));
    space.whole->pages = space.pages;
    granules_.place(*space.whole, space.base);
    space.whole->last_batch = batch_;
    space.whole->last_touched = ++tick_;
    runs_.insert_free(*prepared.run, last_use{});
  }

  /// Forgets a prepared range whose memory did not come.
  void discard(prepared_range prepared) noexcept {
    granules_.recycle(*prepared.piece);
    runs_.recycle(*prepared.run);
    forget_promise(prepared.pages);
  }

  /// Bytes before the first page boundary at or after `p`.
  [[nodiscard]] static std::size_t page_slack(const void* p) noexcept {
    return (page_bytes - reinterpret_cast<std::uintptr_t>(p) % page_bytes) % page_bytes;
  }

  /// Takes `pages` pages that `stream` may use now, the best fit of its own and of the quiet runs;
  /// null where no run is long enough. The run's `use` says whose it was. \throws std::bad_alloc
  [[nodiscard]] page_run* take(stream_id stream, std::size_t pages) {
    runs_.reserve(1);
    page_run* run = best_fit(quiet_stream, pages);
    page_run* own = stream == quiet_stream ? nullptr : best_fit(stream, pages);
    if (run == nullptr || (own != nullptr && own->pages <= run->pages)) {
      run = own;
    }
    if (run == nullptr) {
      run = join_neighbours(stream, pages);
    } else {
      runs_.erase_free(*run);
    }
    if (run == nullptr) {
      return nullptr;
    }
    if (page_run* rest = runs_.cut_off(*run, pages)) {
      runs_.insert_free(*rest, run->use);
    }
    granules_.for_each_in(*run, [this](granule& g) { g.last_batch = batch_; });
    return run;
  }

  /// Cuts a taken run into blocks of `block_bytes`, none of them handed out yet.
  /// On failure the run is free again. \throws std::bad_alloc
  void cut(page_run& run, std::size_t block_bytes, std::size_t capacity) {
    try {
      run.blocks = std::make_unique<block[]>(capacity);
    } catch (...) {
      runs_.insert_free(run, run.use);
      throw;
    }
    run.block_bytes = block_bytes;
    run.capacity = capacity;
    run.index = capacity == 1 ? block_index{} : block_index{block_bytes};
    run.cut_blocks = run.in_use = 0;
    runs_.publish(run);
  }

  /// Gives back a cut run; no block of it may be in use or in a list, and no thread inside `find`.
  void give(page_run& run, last_use use) noexcept {
    runs_.unpublish(run);
    run.blocks.reset();
    ++tick_;
    granules_.for_each_in(run, [this](granule& g) { g.last_touched = tick_; });
    runs_.insert_free(run, use);
  }

  /// Makes the free runs of `stream` that were last used up to epoch `complete` quiet.
  void promote(stream_id stream, epoch complete) noexcept {
    const free_run_index& free = runs_.free_runs();
    for (auto i = free.lower_bound(free_run_order::key{stream, 0});
         i != free.end() && (*i)->use.stream == stream;) {
      page_run& run = **i++;
      if (run.use.freed <= complete) {
        runs_.erase_free(run);
        runs_.insert_free(run, last_use{});  // joins quiet runs alone: `i` stays valid
      }
    }
  }

  /// Whether a free run belongs to `stream`.
  [[nodiscard]] bool owns_free_run(stream_id stream) const noexcept {
    return best_fit(stream, 0) != nullptr;
  }

  /// The block that starts at `p`, or null; of a block never handed out the state is `uncut`.
  ///
  /// Under the pool's lock safe for any pointer. Without it, safe beside everything that the heap
  /// does to other runs as long as `p` lies in a cut run that stays cut meanwhile: it has a block
  /// in use, or whoever calls `give` makes sure that no thread is in here.
  [[nodiscard]] block* find(const void* p) const noexcept {
    const page_run* run = runs_.published(p);
    if (run == nullptr) {
      return nullptr;
    }
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(p) - run->start);
    const std::size_t i = run->index.of(offset);
    return i < run->capacity && i * run->block_bytes == offset ? &run->blocks[i] : nullptr;
  }

  /// A granule on its way out of the heap, with its pages as a run of their own.
  struct removed_granule {
    granule* piece = nullptr;
    page_run* place = nullptr;
  };

  /// Takes the acquisition out that has been quiet as a whole for longest, of those last taken from
  /// before batch `before`, so that its memory can be released. Nothing where there is none.
  [[nodiscard]] removed_granule remove_oldest(
      std::uint64_t before = std::numeric_limits<std::uint64_t>::max()) noexcept {
    removed_granule oldest;
    for_each_quiet_run([&](page_run& run) {
      granule* g = run.space->whole;
      const bool fits = g != nullptr && g->pages == run.pages && g->last_batch < before;
      if (fits && (oldest.piece == nullptr || g->last_touched < oldest.piece->last_touched)) {
        oldest = {g, &run};
      }
    });
    if (oldest.piece != nullptr) {
      runs_.erase_free(*oldest.place);
    }
    return oldest;
  }

  /// Puts a granule back that could not be released; it is the youngest then.
  void put_back(const removed_granule& removed) noexcept {
    removed.piece->last_touched = ++tick_;
    runs_.insert_free(*removed.place, last_use{});
  }

  /// Forgets an acquisition that was released.
  void forget(const removed_granule& removed) noexcept {
    const page_space* space = removed.place->space;
    granules_.recycle(*removed.piece);
    runs_.recycle(*removed.place);
    spaces_.erase(std::find_if(spaces_.begin(), spaces_.end(),
                               [space](const auto& s) { return s.get() == space; }));
  }

  /// Calls `f(page_run&)` for each cut run, in ascending order of address. `f` may give it back.
  template <typename Function>
  void for_each_cut_run(Function&& f) {
    for (const auto& space : spaces_) {
      for (const std::byte* page = space->base; page != space->end();) {
        page_run& run = runs_.starting_at(page);
        if (run.state == run_state::cut) {
          f(run);  // a run that is given back takes in its neighbours, and stays itself
        }
        page = run.end();
      }
    }
  }

  /// Pages of the longest free run, whoever owns it.
  [[nodiscard]] std::size_t longest_free_run() const noexcept {
    std::size_t longest = 0;
    for (const page_run* run : runs_.free_runs()) {
      longest = std::max(longest, run->pages);
    }
    return longest;
  }

  /// How many granules there are.
  [[nodiscard]] std::size_t granule_count() const noexcept { return granules_.size(); }

  /// Whether a free run that belongs to a stream lies in a granule last taken from before batch
  /// `before`.
  [[nodiscard]] bool has_owned_run(std::uint64_t before) const noexcept {
    const free_run_index& free = runs_.free_runs();
    return std::any_of(free.begin(), free.end(), [&](const page_run* run) {
      bool found = false;
      if (!run->use.quiet()) {
        granules_.for_each_in(*run,
                              [&](const granule& g) { found = found || g.last_batch < before; });
      }
      return found;
    });
  }

  /// Starts a new batch: what is taken from now on counts for it.
  void next_batch() noexcept { ++batch_; }
  [[nodiscard]] std::uint64_t batch() const noexcept { return batch_; }

 private:
  /// Makes sure that a granule and two runs can be made and `pages` pages found a place.
  /// \throws std::bad_alloc; nothing is promised then
  void reserve_for(std::size_t pages) {
    reserve_amortised(spaces_, spaces_.size() + prepared_ + 1);
    granules_.recycle(granules_.make());
    runs_.reserve(2);
    granules_.reserve(pages);
    try {
      runs_.reserve_addresses(pages);
    } catch (...) {
      granules_.unreserve(pages);
      throw;
    }
  }

  void forget_promise(std::size_t pages) noexcept {
    granules_.unreserve(pages);
    runs_.unreserve_addresses(pages);
    --prepared_;
  }

  void insert_space(std::unique_ptr<page_space> space) noexcept {
    const auto place = std::upper_bound(
        spaces_.begin(), spaces_.end(), space->base,
        [](const std::byte* base, const auto& other) { return base < other->base; });
    spaces_.insert(place, std::move(space));
  }

  [[nodiscard]] page_run* best_fit(stream_id stream, std::size_t pages) const noexcept {
    const free_run_index& free = runs_.free_runs();
    const auto found = free.lower_bound(free_run_order::key{stream, pages});
    return found != free.end() && (*found)->use.stream == stream ? *found : nullptr;
  }

  template <typename Function>
  void for_each_quiet_run(Function&& f) const {
    const free_run_index& free = runs_.free_runs();
    for (auto i = free.lower_bound(free_run_order::key{quiet_stream, 0});
         i != free.end() && (*i)->use.quiet(); ++i) {
      f(**i);
    }
  }

  [[nodiscard]] static bool usable(const page_run* run, stream_id stream) noexcept {
    return run_table::is_free(run) && (run->use.quiet() || run->use.stream == stream);
  }

  /// A stretch of free neighbours that are quiet or of `stream`, joined into one taken run of
  /// `stream`; or null. Done only when no single run serves: it ties the quiet part to the stream.
  /// Quiet neighbours are one run already, so each such stretch has a run of the stream.
  [[nodiscard]] page_run* join_neighbours(stream_id stream, std::size_t pages) noexcept {
    const free_run_index& free = runs_.free_runs();
    for (auto own = free.lower_bound(free_run_order::key{stream, 0});
         own != free.end() && (*own)->use.stream == stream && stream != quiet_stream; ++own) {
      std::size_t length = (*own)->pages;
      page_run* first = *own;
      for (page_run* run = runs_.before(*first); usable(run, stream); run = runs_.before(*run)) {
        length += run->pages;
        first = run;
      }
      for (page_run* run = runs_.after(**own); usable(run, stream); run = runs_.after(*run)) {
        length += run->pages;
      }
      if (length >= pages) {
        return &join_from(*first, pages);
      }
    }
    return nullptr;
  }

  page_run& join_from(page_run& first, std::size_t pages) noexcept {
    runs_.erase_free(first);
    while (first.pages < pages) {
      page_run& next = *runs_.after(first);
      first.use = later_of(first.use, next.use);
      runs_.erase_free(next);
      runs_.join(first, next);
    }
    return first;
  }

  /// The later of two uses of which at most one stream is named.
  [[nodiscard]] static last_use later_of(last_use a, last_use b) noexcept {
    if (a.quiet()) {
      return b;
    }
    return {a.stream, b.quiet() ? a.freed : std::max(a.freed, b.freed)};
  }

  run_table runs_;
  granule_table granules_;
  std::vector<std::unique_ptr<page_space>> spaces_;  // ascending by base
  std::size_t prepared_ = 0;
  std::uint64_t tick_ = 0;
  std::uint64_t batch_ = 0;
};

}  // namespace pagesift
