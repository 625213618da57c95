// All memory of a pool that nobody uses now, and the search through it.
#pragma once

#include <pagesift/back/page_heap.hpp>
#include <pagesift/back/request.hpp>
#include <pagesift/core/reserve.hpp>
#include <pagesift/front/other_uses.hpp>
#include <pagesift/front/stream_table.hpp>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <optional>
#include <vector>

namespace pagesift {

/// The page heap, the stream caches and the rules by which a block goes from one to another.
/// The only backend call it makes is the query of an event. The pool's mutex guards it; what looks
/// for blocks or takes them wants every cache locked, which is everything but `poll` and
/// `oldest_pending`.
///
/// Every function that returns a block has taken it out of where it waited, so that nobody else
/// finds it or merges its run; the caller hands it out or puts it back.
template <typename Backend>
class idle_memory {
 public:
  using record = stream_record<Backend>;

  page_heap heap;
  stream_table<Backend> streams;
  event_pool<Backend> events;
  other_uses<Backend> elsewhere;  ///< blocks freed while other streams may still use them

  idle_memory(Backend backend, cache_registry& caches) : streams{caches}, backend_{backend} {}

  /// Undoes the taking of a block: it waits where it waited before.
  void put_back(record& owner, block& b) noexcept { owner.cache_of(b).put_back(b); }

  /// A block that `taker` freed itself: the newest, its use is ordered before whatever comes next.
  [[nodiscard]] block* own_block(record& taker, class_index waiting) noexcept {
    block* const b = taker.first_of([waiting](stream_cache& cache) { return cache.pop(waiting); });
    return marked_taken(b);
  }

  /// A block that `taker` freed itself, of another class that serves the request as well (see
  /// `stream_cache::pop_near`).
  [[nodiscard]] block* near_block(record& taker, const request& r, bool idle_abounds) noexcept {
    block* const b = !has_own_run(r.waiting) ? nullptr : taker.first_of([&](stream_cache& cache) {
      return cache.pop_near(r.waiting, r.bytes, idle_abounds);
    });
    return marked_taken(b);
  }

  /// A block of the request's class that is known complete, of whichever stream.
  [[nodiscard]] block* complete_block(class_index waiting) noexcept {
    record& quiet = streams.quiet();
    if (block* b = own_block(quiet, waiting)) {
      return b;
    }
    block* found = nullptr;
    streams.for_each_incomplete([&](record& r) {
      block* oldest = found == nullptr ? oldest_block(r, waiting) : nullptr;
      if (oldest != nullptr && r.timeline.is_complete(oldest->use.freed)) {
        found = &take(r, *oldest);
      }
    });
    return found;
  }

  /// A complete or own block of a slab of a larger class, for a shortage. Not every larger class
  /// keeps the request's alignment: blocks lie at multiples of their own size.
  [[nodiscard]] block* larger_block(record& taker, const request& r) noexcept {
    for (class_index i = r.waiting; i <= class_of(max_slab_block_bytes); ++i) {
      if (block_bytes(i) % r.alignment != 0) {
        continue;
      }
      if (block* own = own_block(taker, i)) {
        return own;
      }
      if (block* complete = complete_block(i)) {
        return complete;
      }
    }
    return nullptr;
  }

  /// A block cut from a slab with room or from a free run that `taker` may use now, which leaves at
  /// most `most_surplus` pages of a granule that is free as a whole. \throws std::bad_alloc
  [[nodiscard]] block* fresh_block(const record& taker, const request& r, const run_shape& shape,
                                   std::size_t most_surplus = page_heap::any_surplus) {
    if (block* b = uncut_block(taker, r.index)) {
      return b;
    }
    const bool slab = shape.block_bytes <= max_slab_block_bytes;
    if (slab) {
      std::vector<page_run*>& with_room = uncut_[r.index];
      reserve_amortised(with_room, with_room.size() + 1);
    }
    page_run* run = heap.take(taker.id, shape.pages, most_surplus);
    if (run == nullptr) {
      return nullptr;
    }
    heap.cut(*run, shape.block_bytes, shape.capacity);
    block& b = cut_next(*run);
    if (run->has_uncut()) {
      uncut_[r.index].push_back(run);
    }
    return &b;
  }

  /// Gives runs without a block in use back to the heap where they belong to `own` or nobody.
  void merge_own(const record& own) noexcept {
    const auto wanted = [&own](const block& b) { return b.use.quiet() || b.use.stream == own.id; };
    merge_own_runs(wanted, own.id, [&](const auto& take_from) {  // nobody else has such blocks
      take_from(own);
      take_from(streams.quiet());
    });
    merge_shared_runs(wanted, own.id);
  }

  /// Gives large blocks of `own` back to the heap one by one, of the largest class and the oldest
  /// first, until `serve()` returns a block; or null. What is not needed stays where hits find it.
  template <typename Serve>
  [[nodiscard]] block* merge_until(record& own, Serve&& serve) {
    for (class_index i = class_count; --i > class_of(max_slab_block_bytes);) {
      while (block* const idle = oldest_block(own, i)) {
        const block& given = take(own, *idle);
        heap.give(*given.run, streams.is_complete(given.use) ? last_use{} : given.use);
        if (block* const b = serve()) {
          return b;
        }
      }
    }
    return nullptr;
  }

  /// Gives every run without a block in use back to the heap whose uses are complete or `own`'s.
  void merge_complete(stream_id own) noexcept {
    merge([](const block&) { return true; }, own);
    promote_complete();
  }

  /// Gives back runs of classes for which `untouched(class)` holds.
  template <typename Untouched>
  void merge_classes(Untouched&& untouched) noexcept {
    merge([&](const block& b) { return untouched(b.run->waiting); }, quiet_stream);
    promote_complete();
  }

  /// A block of another stream that an event covers which has not been seen complete.
  struct pending_block {
    record* owner;
    block* taken;
    typename stream_timeline<Backend>::seal seal;
  };
  [[nodiscard]] std::optional<pending_block> take_pending(const request& r) noexcept {
    std::optional<pending_block> found;
    streams.for_each([&](record& other) {
      block* b = found ? nullptr : oldest_block(other, r.waiting);
      if (b != nullptr && other.timeline.is_pending(b->use.freed)) {
        found = pending_block{&other, &take(other, *b), other.timeline.seal_of(b->use.freed)};
      }
    });
    return found;
  }

  /// Asks after every outstanding seal and every use on another stream that a block waits for.
  /// Returns the first failure that is not "not ready". Precondition: no cache is locked by the
  /// caller.
  status poll() noexcept {
    status first_failure;
    streams.for_each([&](record& r) {
      if (!r.timeline.has_pending()) {
        return;
      }
      const epoch before = r.timeline.complete();
      const status result = r.timeline.poll(backend_, events);
      first_failure = first_failure.ok() ? result : first_failure;
      if (r.timeline.complete() != before) {
        heap.promote(r.id, r.timeline.complete());
      }
    });
    if (elsewhere.waiting() != 0) {
      const status asked = elsewhere.poll(
          backend_, events,
          [this](record& owner, block& b, epoch freed) { let_wait(owner, b, freed); });
      first_failure = first_failure.ok() ? asked : first_failure;
    }
    return first_failure;
  }

  /// Lets a block whose uses on other streams are complete wait on the stream it was freed on in
  /// epoch `freed`, or, where that is complete, as a quiet one. Precondition: no cache is locked by
  /// the caller.
  void let_wait(record& owner, block& b, epoch freed) noexcept {
    const bool quiet = owner.timeline.is_complete(freed);
    stream_cache& cache = (quiet ? streams.quiet() : owner).first_cache();
    const cache_guard guard{cache.lock};
    cache.push_late(b, quiet ? last_use{} : last_use{owner.id, freed});
  }

  /// Whether there is anything to ask the backend about.
  [[nodiscard]] bool has_pending() const noexcept {
    bool found = elsewhere.waiting() != 0;
    streams.for_each([&found](const record& r) { found = found || r.timeline.has_pending(); });
    return found;
  }

  /// The stream with the oldest outstanding seal, or null.
  [[nodiscard]] record* oldest_pending() noexcept {
    record* oldest = nullptr;
    streams.for_each([&](record& r) {
      if (r.timeline.has_pending() &&
          (oldest == nullptr ||
           r.timeline.oldest_pending().covered < oldest->timeline.oldest_pending().covered)) {
        oldest = &r;
      }
    });
    return oldest;
  }

  /// Whether idle memory of the stream waits for a use that the host has not seen complete: a
  /// block, a free run, or what is not yet cut of a slab.
  [[nodiscard]] bool has_incomplete(const record& r) const noexcept {
    return streams.has_incomplete(r) || heap.owns_free_run(r.id) || has_incomplete_slab(r);
  }
  /// Whether an event on the stream, which is about to go, would show the end of a use of what was
  /// freed on it, idle or waiting for other streams or graphs besides.
  [[nodiscard]] bool wants_last_event(const record& r) const noexcept {
    return has_incomplete(r) || !r.timeline.is_complete(r.newest_away);
  }
  /// Whether any idle memory does.
  [[nodiscard]] bool has_incomplete() noexcept {
    bool found = elsewhere.waiting() != 0;
    streams.for_each_incomplete([&](record& r) { found = found || has_incomplete(r); });
    return found;
  }

  /// Forgets the streams of which all is complete.
  void sweep() noexcept {
    streams.sweep([this](const record& r) {
      heap.promote(r.id, r.timeline.complete());
      return !has_incomplete(r);
    });
  }

  /// The use of memory that a stream has now: complete when all that was submitted to it so far is.
  /// Of a stream that is not known any more only a fence shows that.
  [[nodiscard]] last_use last_use_now(stream_id stream) noexcept {
    if (stream == quiet_stream) {
      return {};
    }
    const record* known = streams.known(stream);
    const record& r = known != nullptr ? *known : streams.unordered();
    return {r.id, r.timeline.current()};
  }

  /// Whether a block waits in a cache whose class satisfies `wanted`.
  template <typename Wanted>
  [[nodiscard]] bool has_idle(Wanted&& wanted) noexcept {
    bool found = false;
    const auto look = [&](const record& r) {
      r.for_each_cache([&](const stream_cache& cache) {
        for (class_index i = 0; i < class_count && !found; ++i) {
          found = !cache.of(i).empty() && wanted(i);
        }
      });
    };
    streams.for_each_record(look);
    return found;
  }

  /// Bytes of the longest idle piece, whichever stream it belongs to.
  [[nodiscard]] std::size_t largest() const noexcept {
    std::size_t bytes = heap.longest_free_run() * page_bytes;
    const auto consider = [&bytes](const record& r) {
      r.for_each_cache([&bytes](const stream_cache& cache) {
        const block* b = cache.largest();
        bytes = b == nullptr ? bytes : std::max(bytes, b->run->block_bytes);
      });
    };
    streams.for_each_record(consider);
    return bytes;
  }

 private:
  /// A block, or null, that was just popped from a cache.
  [[nodiscard]] static block* marked_taken(block* b) noexcept {
    if (b != nullptr) {
      b->set(block_state::taken);
    }
    return b;
  }

  [[nodiscard]] block& take(record& owner, block& b) noexcept {
    owner.cache_of(b).erase(b);
    b.set(block_state::taken);
    return b;
  }

  /// The block of that class that was freed first.
  [[nodiscard]] static block* oldest_block(const record& r, class_index waiting) noexcept {
    block* oldest = nullptr;
    r.for_each_cache([&](const stream_cache& cache) {
      block* b = cache.of(waiting).oldest();
      if (b != nullptr && (oldest == nullptr || b->use.freed < oldest->use.freed)) {
        oldest = b;
      }
    });
    return oldest;
  }

  [[nodiscard]] static block& cut_next(page_run& run) noexcept {
    block& b = run.blocks[run.cut_blocks];
    b.address = run.base() + run.cut_blocks * run.block_bytes;
    b.run = &run;
    b.set(block_state::taken);
    ++run.cut_blocks;
    return b;
  }

  /// The next block of a slab whose uncut part `taker` may use.
  [[nodiscard]] block* uncut_block(const record& taker, class_index index) noexcept {
    if (index >= uncut_.size()) {
      return nullptr;
    }
    std::vector<page_run*>& slabs = uncut_[index];
    const auto usable = std::find_if(slabs.begin(), slabs.end(), [&](const page_run* run) {
      return run->use.stream == taker.id || streams.is_complete(run->use);
    });
    if (usable == slabs.end()) {
      return nullptr;
    }
    page_run& run = **usable;
    block& b = cut_next(run);
    if (!run.has_uncut()) {
      slabs.erase(usable);
    }
    return &b;
  }

  [[nodiscard]] bool has_incomplete_slab(const record& r) const noexcept {
    const auto waits = [&r](const page_run* run) {
      return run->use.stream == r.id && !r.timeline.is_complete(run->use.freed);
    };
    return std::any_of(uncut_.begin(), uncut_.end(), [&waits](const auto& slabs) {
      return std::any_of(slabs.begin(), slabs.end(), waits);
    });
  }

  /// Makes the free runs whose uses are known complete anybody's.
  void promote_complete() noexcept {
    streams.for_each_incomplete([this](record& r) { heap.promote(r.id, r.timeline.complete()); });
  }

  /// Gives back each run without a block in use, all of whose blocks satisfy `wanted`, and whose
  /// uses are complete or `own`'s alone.
  template <typename Wanted>
  void merge(Wanted&& wanted, stream_id own) noexcept {
    merge_own_runs(wanted, own, [&](const auto& take_from) { streams.for_each_record(take_from); });
    merge_shared_runs(wanted, own);
  }

  /// Of runs that are one block each: the caches know which of them are idle. `for_each(take_from)`
  /// calls `take_from(record)` for those whose caches may have some.
  template <typename Wanted, typename ForEach>
  void merge_own_runs(Wanted&& wanted, stream_id own, ForEach&& for_each) noexcept {
    const auto leaves = [&](const block& b) {
      return wanted(b) && (b.use.stream == own || streams.is_complete(b.use));
    };
    block_stack leaving;
    const auto take_from = [&](const record& r) {
      r.for_each_cache([&](stream_cache& cache) {
        for (class_index i = class_of(max_slab_block_bytes) + 1; i < class_count; ++i) {
          cache.erase_if(i, leaves, [&leaving](block& b) { leaving.push(b); });
        }
      });
    };
    for_each(take_from);
    while (!leaving.empty()) {  // of one cache and class, what was freed first is given first
      const block& b = leaving.pop();
      heap.give(*b.run, streams.is_complete(b.use) ? last_use{} : b.use);
    }
  }

  /// Of slabs, and of blocks that were shortened to the size of those.
  template <typename Wanted>
  void merge_shared_runs(Wanted&& wanted, stream_id own) noexcept {
    std::bitset<class_count> classes;
    heap.for_each_shared_run([&](page_run& run) {
      if (!all_blocks_idle(run, wanted)) {
        return;
      }
      if (const std::optional<last_use> use = common_use(run, own)) {
        mark_leaving(run, *use);
        classes.set(run.waiting);
      }
    });
    if (classes.any()) {
      take_marked(classes);
      heap.for_each_shared_run([this](page_run& run) { give_back_marked(run); });
    }
  }

  template <typename Wanted>
  [[nodiscard]] static bool all_blocks_idle(const page_run& run, Wanted&& wanted) {
    return std::all_of(run.blocks.get(), run.blocks.get() + run.cut_blocks,
                       [&wanted](const block& b) { return b.is(block_state::idle) && wanted(b); });
  }

  /// The use after which the whole run is free: quiet, or the latest of `own`; none if a part of
  /// it waits for another stream.
  [[nodiscard]] std::optional<last_use> common_use(const page_run& run,
                                                   stream_id own) const noexcept {
    last_use common;
    const auto add = [&](const last_use& use) {
      if (streams.is_complete(use)) {
        return true;
      }
      common.freed = std::max(common.freed, use.freed);
      common.stream = own;
      return use.stream == own;
    };
    if (run.has_uncut() && !add(run.use)) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < run.cut_blocks; ++i) {
      if (!add(run.blocks[i].use)) {
        return std::nullopt;
      }
    }
    return common;
  }

  static void mark_leaving(page_run& run, last_use use) noexcept {
    run.leaving = true;
    run.use = use;
    std::for_each_n(run.blocks.get(), run.cut_blocks, [](block& b) { b.set(block_state::taken); });
  }

  /// Takes the blocks of marked runs out of all caches, in one walk along each stack.
  void take_marked(const std::bitset<class_count>& classes) noexcept {
    const auto take_from = [&classes](const record& r) {
      r.for_each_cache([&classes](stream_cache& cache) {
        for (class_index i = 0; i < class_count; ++i) {
          if (classes[i]) {
            cache.erase_if(
                i, [](const block& b) { return b.is(block_state::taken); }, [](block&) {});
          }
        }
      });
    };
    streams.for_each_record(take_from);
  }

  void give_back_marked(page_run& run) noexcept {
    if (!run.leaving) {
      return;
    }
    run.leaving = false;
    if (run.has_uncut()) {
      std::vector<page_run*>& slabs = uncut_[class_of(run.block_bytes)];
      slabs.erase(std::find(slabs.begin(), slabs.end(), &run));
    }
    heap.give(run, run.use);
  }

  Backend backend_;
  std::array<std::vector<page_run*>, class_of(max_slab_block_bytes) + 1> uncut_;
};

}  // namespace pagesift
