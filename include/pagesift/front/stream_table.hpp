// The records of all streams, found by id.
#pragma once

#include <pagesift/back/block.hpp>
#include <pagesift/core/reserve.hpp>
#include <pagesift/front/cache_registry.hpp>
#include <pagesift/front/stream_record.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <unordered_map>
#include <vector>

namespace pagesift {

/// A handle value is never kept: it may be used again for another stream. The pool's mutex guards
/// it, but for `several_seen` and `many`; what looks into a cache wants every cache locked.
template <typename Backend>
class stream_table {
 public:
  using record = stream_record<Backend>;

  /// From this many streams on, finished ones are looked for, and every free is sealed: streams
  /// that come and go would otherwise each leave memory behind that no event covers.
  static constexpr std::size_t many_streams = 64;

  explicit stream_table(cache_registry& caches)
      : caches_{caches},
        quiet_{quiet_stream, std::numeric_limits<epoch>::max(), caches.make(false)},
        unordered_{unordered_stream, next_epoch(), caches.make(false)} {}

  /// Idle blocks whose last use the host has seen complete. Its timeline calls every epoch so.
  [[nodiscard]] record& quiet() noexcept { return quiet_; }
  /// Idle blocks whose last stream cannot be named.
  [[nodiscard]] record& unordered() noexcept { return unordered_; }
  [[nodiscard]] const record& quiet() const noexcept { return quiet_; }
  [[nodiscard]] const record& unordered() const noexcept { return unordered_; }

  /// The use that a stream which cannot be named has of what is freed on it now.
  [[nodiscard]] last_use unordered_now() const noexcept {
    return {unordered_stream, unordered_.timeline.current()};
  }

  /// The record in whose caches a block with this last use waits. Precondition: there is one.
  [[nodiscard]] record& find(stream_id id) noexcept {
    if (id == quiet_stream) {
      return quiet_;
    }
    return id == unordered_stream ? unordered_ : *by_id_.find(id)->second;
  }

  /// The record of a stream, or null.
  [[nodiscard]] record* known(stream_id id) const noexcept {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second;
  }

  /// The record of a stream, made at first sight. It stays that stream's until it is swept, which
  /// pinned records are not. Precondition: no cache is locked by the caller. \throws std::bad_alloc
  [[nodiscard]] record& of(stream_id id) {
    if (record* present = known(id)) {
      return *present;
    }
    if (spare_.empty()) {
      reserve_amortised(spare_, records_.size() + 1);
      spare_.push_back(&records_.emplace_back(unordered_stream, epoch{1}, caches_.make(true)));
    }
    record& r = *spare_.back();
    by_id_.emplace(id, &r);
    spare_.pop_back();
    r.restart(id, next_epoch());
    note_size();
    return r;
  }

  /// An epoch no stream has had.
  [[nodiscard]] epoch next_epoch() noexcept { return ++last_epoch_; }

  [[nodiscard]] std::size_t size() const noexcept { return by_id_.size(); }

  /// Whether the pool has ever seen a second stream; before that nobody needs an event.
  [[nodiscard]] bool several_seen() const noexcept {
    return several_seen_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool many() const noexcept { return many_.load(std::memory_order_relaxed); }

  /// Calls `f(record&)` for each stream that can be named.
  template <typename Function>
  void for_each(Function&& f) const {
    for (const auto& [id, r] : by_id_) {
      f(*r);
    }
  }

  /// Calls `f(record&)` for each stream and for the unordered record.
  template <typename Function>
  void for_each_incomplete(Function&& f) {
    for_each(f);
    f(unordered_);
  }

  /// Calls `f(const record&)` for every record there is.
  template <typename Function>
  void for_each_record(Function&& f) const {
    for_each(f);
    f(unordered_);
    f(quiet_);
  }

  /// Whether the host has seen the use complete. A stream without a record has been swept, which
  /// happens only when all its uses were complete.
  [[nodiscard]] bool is_complete(last_use use) const noexcept {
    if (use.quiet()) {
      return true;
    }
    if (use.stream == unordered_stream) {
      return unordered_.timeline.is_complete(use.freed);
    }
    const record* const r = known(use.stream);
    return r == nullptr || r->timeline.is_complete(use.freed);
  }

  /// Whether it is time to look for finished streams.
  [[nodiscard]] bool crowded() const noexcept { return by_id_.size() >= sweep_at_; }

  /// Forgets the streams of which `finished(record)` says that all is complete; their blocks become
  /// quiet. Precondition: every cache is locked.
  template <typename Finished>
  void sweep(Finished&& finished) noexcept {
    for (auto i = by_id_.begin(); i != by_id_.end();) {
      record& r = *i->second;
      if (r.pins != 0 || r.timeline.has_pending() || !finished(r)) {
        ++i;
        continue;
      }
      r.for_each_cache(
          [this](stream_cache& cache) { cache.move_to(quiet_.first_cache(), last_use{}); });
      r.retire();
      spare_.push_back(&r);  // never more than there are records: `of` made room
      i = by_id_.erase(i);
    }
    sweep_at_ = std::max(many_streams, 2 * by_id_.size());
    note_size();
  }

  /// Whether a block in the record's caches is not known complete. Precondition: every cache is
  /// locked.
  [[nodiscard]] bool has_incomplete(const record& r) const noexcept {
    bool found = false;
    r.for_each_cache([&](const stream_cache& cache) {
      for (class_index i = 0; i < class_count && !found; ++i) {
        const block* newest = cache.of(i).newest();
        found = newest != nullptr && !r.timeline.is_complete(newest->use.freed);
      }
    });
    return found;
  }

 private:
  void note_size() noexcept {
    if (by_id_.size() > 1) {
      several_seen_.store(true, std::memory_order_relaxed);
    }
    many_.store(by_id_.size() >= many_streams, std::memory_order_relaxed);
  }

  cache_registry& caches_;
  epoch last_epoch_ = 0;
  record quiet_;
  record unordered_;
  std::deque<record> records_;
  std::vector<record*> spare_;
  std::unordered_map<stream_id, record*> by_id_;
  std::size_t sweep_at_ = many_streams;
  std::atomic<bool> several_seen_{false};
  std::atomic<bool> many_{false};
};

}  // namespace pagesift
