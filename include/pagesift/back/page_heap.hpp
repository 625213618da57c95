// The page heap: free runs of pages, split and coalesced on the host, and the map from an address
// to its block. It makes no backend call; the pool brings ranges in and takes them out.
#pragma once

#include <pagesift/back/page_run.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace pagesift {

/// Runs of pages of all ranges. Not thread-safe: the pool's lock guards it.
///
/// A free run is quiet, or belongs to the stream that used it last until that use is complete.
/// Neighbours of one owner are one run. Host memory for the bookkeeping is asked for only where
/// the docstring says so; nothing that gives memory back needs any.
class page_heap {
 public:
  /// The bookkeeping of a range, made before its memory is acquired so that nothing fails after.
  struct prepared_range {
    std::unique_ptr<page_range> range;
    page_run* run = nullptr;
  };

  /// \throws std::bad_alloc
  [[nodiscard]] prepared_range prepare(std::size_t pages) {
    ranges_.reserve(ranges_.size() + prepared_ + 1);
    prepared_range prepared{std::make_unique<page_range>(), nullptr};
    prepared.range->owner.resize(pages);
    prepared.run = new_run();
    ++prepared_;
    return prepared;
  }

  /// Puts a prepared range in as one quiet run; `acquired` is what the backend gave. A range that
  /// does not start at a page boundary loses its first part and so one page; if that was all it
  /// had, it only waits for its release.
  void add(prepared_range prepared, void* acquired, std::size_t acquired_bytes) noexcept {
    page_range& range = *prepared.range;
    const std::size_t slack = page_slack(acquired);
    range.acquired = acquired;
    range.acquired_bytes = acquired_bytes;
    range.base = static_cast<std::byte*>(acquired) + slack;
    range.pages = (acquired_bytes - slack) / page_bytes;
    const auto place = std::upper_bound(
        ranges_.begin(), ranges_.end(), range.base,
        [](const std::byte* base, const auto& other) { return base < other->base; });
    ranges_.insert(place, std::move(prepared.range));
    --prepared_;
    page_run& run = *prepared.run;
    run.range = &range;
    run.pages = range.pages;
    range.last_batch = batch_;
    insert_free(run, last_use{});
  }

  /// Forgets a prepared range whose memory did not come.
  void discard(prepared_range prepared) noexcept {
    recycle(*prepared.run);
    --prepared_;
  }

  /// Bytes before the first page boundary at or after `p`.
  [[nodiscard]] static std::size_t page_slack(const void* p) noexcept {
    return (page_bytes - reinterpret_cast<std::uintptr_t>(p) % page_bytes) % page_bytes;
  }

  /// Takes `pages` pages that `stream` may use now, the best fit of its own and of the quiet runs;
  /// null where no run is long enough. The run's `use` says whose it was. \throws std::bad_alloc
  [[nodiscard]] page_run* take(stream_id stream, std::size_t pages) {
    page_run* run = best_fit(quiet_stream, pages);
    page_run* own = stream == quiet_stream ? nullptr : best_fit(stream, pages);
    if (run == nullptr || (own != nullptr && own->pages <= run->pages)) {
      run = own;
    }
    if (run == nullptr) {
      run = join_neighbours(stream, pages);
    }
    if (run == nullptr) {
      return nullptr;
    }
    split(*run, pages);
    erase_free(*run);
    run->range->last_batch = batch_;
    return run;
  }

  /// Cuts a taken run into blocks of `block_bytes`, none of them handed out yet.
  /// On failure the run is free again. \throws std::bad_alloc
  void cut(page_run& run, std::size_t block_bytes, std::size_t capacity) {
    try {
      run.blocks = std::make_unique<block[]>(capacity);
    } catch (...) {
      give(run, run.use);
      throw;
    }
    run.cut = true;
    run.block_bytes = block_bytes;
    run.waiting = waiting_class(block_bytes);
    run.capacity = capacity;
    run.cut_blocks = 0;
    std::fill_n(run.range->owner.begin() + static_cast<std::ptrdiff_t>(run.first), run.pages, &run);
  }

  /// Gives back a taken run, cut or not; no block of it may be in use or in a list.
  void give(page_run& run, last_use use) noexcept {
    run.cut = false;
    run.blocks.reset();
    insert_free(run, use);
  }

  /// Makes the free runs of `stream` that were last used up to epoch `complete` quiet.
  void promote(stream_id stream, epoch complete) noexcept {
    for (auto i = free_.lower_bound(free_run_order::key{stream, 0}); i != free_.end();) {
      page_run& run = **i;
      if (run.use.stream != stream) {
        return;
      }
      if (run.use.freed > complete) {
        ++i;
        continue;
      }
      erase_free(run);
      insert_free(run, last_use{});
      i = free_.lower_bound(free_run_order::key{stream, 0});
    }
  }

  /// Whether a free run belongs to `stream`.
  [[nodiscard]] bool owns_free_run(stream_id stream) const noexcept {
    const auto i = free_.lower_bound(free_run_order::key{stream, 0});
    return i != free_.end() && (*i)->use.stream == stream;
  }

  /// The block that starts at `p`, or null. Safe for any pointer.
  [[nodiscard]] block* find(const void* p) const noexcept {
    const auto* address = static_cast<const std::byte*>(p);
    auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), address,
                         [](const std::byte* a, const auto& range) { return a < range->base; });
    if (after == ranges_.begin()) {
      return nullptr;
    }
    const page_range& range = **--after;
    const auto offset = static_cast<std::size_t>(address - range.base);
    const page_run* run = owner_of(range, offset / page_bytes);
    if (run == nullptr || !run->cut) {
      return nullptr;
    }
    const std::size_t in_run = offset - run->first * page_bytes;
    const std::size_t index = in_run / run->block_bytes;
    return in_run % run->block_bytes == 0 && index < run->cut_blocks ? &run->blocks[index]
                                                                     : nullptr;
  }

  /// Of the ranges that are free, quiet and last taken from before batch `before`, the one that has
  /// been so for longest; or null.
  [[nodiscard]] page_range* oldest_quiet_range(
      std::uint64_t before = std::numeric_limits<std::uint64_t>::max()) const noexcept {
    page_range* oldest = nullptr;
    for (const auto& range : ranges_) {
      if (range->all_quiet() && range->last_batch < before &&
          (oldest == nullptr || range->last_touched < oldest->last_touched)) {
        oldest = range.get();
      }
    }
    return oldest;
  }

  /// Takes a range that is all quiet out of the heap, so that its memory can be released.
  [[nodiscard]] prepared_range remove(page_range& range) noexcept {
    page_run& run = *range.owner.front();
    erase_free(run);
    const auto place = std::find_if(ranges_.begin(), ranges_.end(),
                                    [&range](const auto& r) { return r.get() == &range; });
    prepared_range removed{std::move(*place), &run};
    ranges_.erase(place);
    ++prepared_;
    return removed;
  }

  /// Calls `f(page_run&)` for each cut run. `f` may give the run back.
  template <typename Function>
  void for_each_cut_run(Function&& f) {
    for (const auto& range : ranges_) {
      for (std::size_t page = 0; page < range->pages;) {
        page_run& run = *range->owner[page];
        page = run.first + run.pages;
        if (run.cut) {
          f(run);
          // Giving it back may have joined it with neighbours on either side.
          page_run* now = owner_of(*range, page - 1);
          page = now != nullptr ? now->first + now->pages : page;
        }
      }
    }
  }

  /// Calls `f(page_range&)` for each range, in ascending order of address.
  template <typename Function>
  void for_each_range(Function&& f) const {
    for (const auto& range : ranges_) {
      f(*range);
    }
  }

  /// Pages of the longest free run, whoever owns it.
  [[nodiscard]] std::size_t longest_free_run() const noexcept {
    std::size_t longest = 0;
    for (const page_run* run : free_) {
      longest = std::max(longest, run->pages);
    }
    return longest;
  }

  /// How many ranges there are.
  [[nodiscard]] std::size_t range_count() const noexcept { return ranges_.size(); }

  /// Whether a free run that belongs to a stream lies in a range last taken from before batch
  /// `before`.
  [[nodiscard]] bool has_owned_run(std::uint64_t before) const noexcept {
    return std::any_of(free_.begin(), free_.end(), [before](const page_run* run) {
      return !run->use.quiet() && run->range->last_batch < before;
    });
  }

  /// Starts a new batch: what is taken from now on counts for it.
  void next_batch() noexcept { ++batch_; }
  [[nodiscard]] std::uint64_t batch() const noexcept { return batch_; }

 private:
  [[nodiscard]] page_run* best_fit(stream_id stream, std::size_t pages) const noexcept {
    const auto found = free_.lower_bound(free_run_order::key{stream, pages});
    return found != free_.end() && (*found)->use.stream == stream ? *found : nullptr;
  }

  /// A stretch of free neighbours that are quiet or of `stream`, joined into one run of `stream`.
  /// Done only when no single run serves: it ties the quiet part to the stream.
  [[nodiscard]] page_run* join_neighbours(stream_id stream, std::size_t pages) noexcept {
    for (const auto& range : ranges_) {
      std::size_t length = 0;
      for (std::size_t page = 0; page < range->pages;) {
        page_run& run = *range->owner[page];
        page = run.first + run.pages;
        const bool usable = !run.cut && (run.use.quiet() || run.use.stream == stream);
        length = usable ? length + run.pages : 0;
        if (length >= pages) {
          return &join(*range, page - length, page);
        }
      }
    }
    return nullptr;
  }

  page_run& join(page_range& range, std::size_t first, std::size_t end) noexcept {
    page_run& joined = *range.owner[first];
    erase_free(joined);
    last_use use = joined.use;
    while (joined.first + joined.pages < end) {
      page_run& next = *range.owner[joined.first + joined.pages];
      erase_free(next);
      use = later_of(use, next.use);
      joined.pages += next.pages;
      recycle(next);
    }
    link_free(joined, use);
    return joined;
  }

  /// The later of two uses of which at most one stream is named.
  [[nodiscard]] static last_use later_of(last_use a, last_use b) noexcept {
    if (a.quiet()) {
      return b;
    }
    return {a.stream, b.quiet() ? a.freed : std::max(a.freed, b.freed)};
  }

  /// Shortens a free run to its first `pages` pages; the rest becomes a run of the same owner.
  void split(page_run& run, std::size_t pages) {
    if (run.pages == pages) {
      return;
    }
    page_run& rest = *new_run();
    erase_free(run);
    rest.range = run.range;
    rest.first = run.first + pages;
    rest.pages = run.pages - pages;
    run.pages = pages;
    link_free(run, run.use);
    link_free(rest, run.use);
  }

  /// Makes a run free, joined with the neighbours of the same owner.
  void insert_free(page_run& run, last_use use) noexcept {
    page_range& range = *run.range;
    range.last_touched = ++tick_;
    if (run.first + run.pages < range.pages) {
      absorb(run, range.owner[run.first + run.pages], use);
    }
    if (run.first > 0) {
      absorb(run, range.owner[run.first - 1], use);
    }
    link_free(run, use);
  }

  /// Joins the free neighbour `other` to `run`, which is in no index, if both have one owner.
  void absorb(page_run& run, page_run* other, last_use& use) noexcept {
    if (other->cut || other->use.stream != use.stream || other->node) {
      return;
    }
    erase_free(*other);
    use.freed = std::max(use.freed, other->use.freed);
    run.first = std::min(run.first, other->first);
    run.pages += other->pages;
    recycle(*other);
  }

  void link_free(page_run& run, last_use use) noexcept {
    run.use = use;
    const std::size_t last = run.first + std::max<std::size_t>(run.pages, 1) - 1;
    run.range->owner[run.first] = run.range->owner[last] = &run;
    run.range->quiet_pages += use.quiet() ? run.pages : 0;
    free_.insert(std::move(run.node));
  }

  void erase_free(page_run& run) noexcept {
    run.range->quiet_pages -= run.use.quiet() ? run.pages : 0;
    run.node = free_.extract(free_.find(&run));
  }

  [[nodiscard]] static page_run* owner_of(const page_range& range, std::size_t page) noexcept {
    if (page >= range.pages) {
      return nullptr;
    }
    page_run* run = range.owner[page];
    const bool owns = run != nullptr && run->range == &range && run->first <= page &&
                      page < run->first + run->pages;
    return owns ? run : nullptr;
  }

  /// A run object with its index node, so that freeing it later needs no memory.
  [[nodiscard]] page_run* new_run() {
    if (spare_.empty()) {
      spare_.reserve(runs_.size() + 1);
      page_run& run = runs_.emplace_back();
      free_run_index node_maker;
      run.node = node_maker.extract(node_maker.insert(&run).first);
      return &run;
    }
    page_run* run = spare_.back();
    spare_.pop_back();
    return run;
  }

  /// Run objects are kept for reuse and never destroyed, so that a stale `owner` entry can be told.
  void recycle(page_run& run) noexcept {
    run.range = nullptr;
    run.first = run.pages = 0;
    run.use = {};
    spare_.push_back(&run);
  }

  std::vector<std::unique_ptr<page_range>> ranges_;  // ascending by base
  free_run_index free_;
  std::deque<page_run> runs_;
  std::vector<page_run*> spare_;
  std::size_t prepared_ = 0;
  std::uint64_t tick_ = 0;
  std::uint64_t batch_ = 0;
};

}  // namespace pagesift
