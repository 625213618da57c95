// The page heap: free runs of pages, split and coalesced on the host, and the map from an address
// to its block. It makes no backend call; the pool brings memory in and takes it out.
#pragma once

#include <pagesift/back/page_run.hpp>
#include <pagesift/back/page_stock.hpp>
#include <pagesift/back/request.hpp>
#include <pagesift/core/reserve.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace pagesift {

/// Free runs and cut runs on the memory of a page_stock. Not thread-safe, but for `find`: the
/// pool's lock guards it.
///
/// A free run is quiet, or belongs to the stream that used it last until that use is complete.
/// Neighbours of one owner are one run. Host memory for the bookkeeping is asked for only where
/// the docstring says so; nothing that gives memory back needs any.
class page_heap : public page_stock {
 public:
  static constexpr std::size_t any_surplus = std::numeric_limits<std::size_t>::max();

  /// Takes `pages` pages that `stream` may use now, the best fit of its own and of the quiet runs;
  /// null where no run is long enough, or the best would leave more than `most_surplus` pages in a
  /// granule that is free as a whole. The run's `use` says whose it was. \throws std::bad_alloc
  [[nodiscard]] page_run* take(stream_id stream, std::size_t pages,
                               std::size_t most_surplus = any_surplus) {
    runs_.reserve(1);
    page_run* run = best_fit(quiet_stream, pages);
    page_run* own = stream == quiet_stream ? nullptr : best_fit(stream, pages);
    if (run == nullptr || (own != nullptr && own->pages <= run->pages)) {
      run = own;
    }
    if (run != nullptr && most_surplus != any_surplus && surplus(*run, pages) > most_surplus) {
      return nullptr;
    }
    if (run == nullptr && most_surplus == any_surplus) {
      run = join_neighbours(stream, pages);
    } else if (run != nullptr) {
      runs_.erase_free(*run);
    }
    if (run == nullptr) {
      return nullptr;
    }
    if (page_run* rest = runs_.cut_off(*run, pages)) {
      runs_.insert_free(*rest, run->use);
    }
    note_taken(*run);
    return run;
  }

  /// Takes out the granule of which the quiet run that fits `pages` pages best would leave more
  /// than `most_surplus` pages, to be released and made anew in parts; null where there is none.
  /// \throws std::bad_alloc
  [[nodiscard]] granule* remove_coarse(std::size_t pages, std::size_t most_surplus) {
    page_run* const run = best_fit(quiet_stream, pages);
    if (run == nullptr || run->space->whole != nullptr || surplus(*run, pages) <= most_surplus) {
      return nullptr;
    }
    return take_granule({&granules_.at(run->start + pages * page_bytes), run});
  }

  /// How many runs are one block.
  [[nodiscard]] std::size_t large_blocks() const noexcept { return large_blocks_; }

  /// Cuts a taken run into blocks of `block_bytes`, none of them handed out yet.
  /// On failure the run is free again. \throws std::bad_alloc
  void cut(page_run& run, std::size_t block_bytes, std::size_t capacity) {
    try {
      reserve_amortised(shared_, shared_.size() + 1);
      run.blocks = std::make_unique<block[]>(capacity);
    } catch (...) {
      runs_.insert_free(run, run.use);
      throw;
    }
    run.block_bytes = block_bytes;
    run.waiting = waiting_class(block_bytes);
    run.capacity = capacity;
    run.index = capacity == 1 ? block_index{} : block_index{block_bytes};
    run.cut_blocks = 0;
    large_blocks_ += capacity == 1 ? 1 : 0;
    note_shared(run);
    runs_.publish(run);
  }

  /// Gives back a cut run; no block of it may be in use or in a list, and no thread inside `find`.
  void give(page_run& run, last_use use) noexcept {
    runs_.unpublish(run);
    large_blocks_ -= run.capacity == 1 ? 1 : 0;
    forget_shared(run);
    run.blocks.reset();
    note_given(run);
    runs_.insert_free(run, use);
  }

  /// Shortens a cut run of one block, which may be in use, to `pages` pages; the rest is free, last
  /// used by `use`. Looking the block up stays safe meanwhile, reading its size does not.
  /// \throws std::bad_alloc; the run is as before then
  void shorten(page_run& run, std::size_t pages, last_use use) {
    reserve_amortised(shared_, shared_.size() + 1);
    page_run& rest = runs_.cut_off_block(run, pages);
    forget_shared(run);
    run.block_bytes = run.bytes();
    run.waiting = waiting_class(run.block_bytes);
    note_shared(run);
    note_given(rest);
    runs_.insert_free(rest, use);
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

  /// Calls `f(page_run&)` for each cut run whose blocks wait in the classes of slabs, in any order.
  /// `f` may give it back.
  template <typename Function>
  void for_each_shared_run(Function&& f) {
    for (std::size_t i = shared_.size(); i-- > 0;) {
      f(*shared_[i]);  // whoever takes its place was there already
    }
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

 private:
  void note_shared(page_run& run) noexcept {
    if (!has_own_run(run.waiting)) {
      run.shared = shared_.size();
      shared_.push_back(&run);  // there is room
    }
  }
  void forget_shared(const page_run& run) noexcept {
    if (!has_own_run(run.waiting)) {
      shared_[run.shared] = shared_.back();
      shared_[run.shared]->shared = run.shared;
      shared_.pop_back();
    }
  }

  /// Pages that the first `pages` pages of a free run leave of a granule that lies in it as a
  /// whole.
  [[nodiscard]] std::size_t surplus(const page_run& run, std::size_t pages) const noexcept {
    const std::byte* const end = run.start + pages * page_bytes;
    if (end == run.end()) {
      return 0;
    }
    const granule& g = granules_.at(end);
    return g.start < end && is_within(g, run) ? static_cast<std::size_t>(g.end() - end) / page_bytes
                                              : 0;
  }

  [[nodiscard]] page_run* best_fit(stream_id stream, std::size_t pages) const noexcept {
    const free_run_index& free = runs_.free_runs();
    const auto found = free.lower_bound(free_run_order::key{stream, pages});
    return found != free.end() && (*found)->use.stream == stream ? *found : nullptr;
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
      for (page_run* run = runs_.before(*first); run_table::is_usable(run, stream);
           run = runs_.before(*run)) {
        length += run->pages;
        first = run;
      }
      for (page_run* run = runs_.after(**own); run_table::is_usable(run, stream);
           run = runs_.after(*run)) {
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

  std::size_t large_blocks_ = 0;
  std::vector<page_run*> shared_;  ///< the cut runs whose blocks wait in the classes of slabs
};

}  // namespace pagesift
