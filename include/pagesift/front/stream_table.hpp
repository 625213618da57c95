// What the pool knows of each stream: its timeline and its cache.
#pragma once

#include <pagesift/back/block.hpp>
#include <pagesift/exchange/stream_timeline.hpp>
#include <pagesift/front/stream_cache.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>

namespace pagesift {

template <typename Backend>
struct stream_record {
  stream_record(stream_id stream, epoch first) noexcept : id{stream}, timeline{first} {}

  stream_id id;
  stream_timeline<Backend> timeline;
  stream_cache cache;
  std::uint64_t asks_answered = 0;  ///< how many of the pool's asks its last seal answered
  int pins = 0;                     ///< calls in progress that refer to it without the lock
};

/// The records of all streams, found by id. A handle value is never kept: it may be used again for
/// another stream. Not thread-safe: the pool's lock guards it.
template <typename Backend>
class stream_table {
 public:
  using record = stream_record<Backend>;

  /// From this many streams on, finished ones are looked for, and every free is sealed: streams
  /// that come and go would otherwise each leave memory behind that no event covers.
  static constexpr std::size_t many_streams = 64;

  stream_table()
      : quiet_{quiet_stream, std::numeric_limits<epoch>::max()},
        unordered_{unordered_stream, next_epoch()} {}

  /// Idle blocks whose last use the host has seen complete. Its timeline calls every epoch so.
  [[nodiscard]] record& quiet() noexcept { return quiet_; }
  /// Idle blocks whose last stream cannot be named.
  [[nodiscard]] record& unordered() noexcept { return unordered_; }
  [[nodiscard]] const record& quiet() const noexcept { return quiet_; }
  [[nodiscard]] const record& unordered() const noexcept { return unordered_; }

  /// The record in whose cache a block with this last use waits. Precondition: there is one.
  [[nodiscard]] record& find(stream_id id) noexcept {
    if (id == quiet_stream) {
      return quiet_;
    }
    return id == unordered_stream ? unordered_ : records_.find(id)->second;
  }

  /// The record of a stream that can be named, or null.
  [[nodiscard]] const record* known(stream_id id) const noexcept {
    const auto found = records_.find(id);
    return found == records_.end() ? nullptr : &found->second;
  }

  /// The record of a stream, made at first sight. References stay valid until it is swept, which
  /// pinned records are not. \throws std::bad_alloc
  [[nodiscard]] record& of(stream_id id) {
    const auto found = records_.find(id);
    if (found != records_.end()) {
      return found->second;
    }
    return records_.try_emplace(id, id, next_epoch()).first->second;
  }

  /// An epoch no stream has had.
  [[nodiscard]] epoch next_epoch() noexcept { return ++last_epoch_; }

  [[nodiscard]] std::size_t size() const noexcept { return records_.size(); }

  /// Whether the pool has ever seen a second stream; before that nobody needs an event.
  [[nodiscard]] bool several_seen() const noexcept { return several_seen_ || records_.size() > 1; }

  /// Calls `f(record&)` for each stream that can be named.
  template <typename Function>
  void for_each(Function&& f) {
    for (auto& [id, r] : records_) {
      f(r);
    }
  }
  template <typename Function>
  void for_each(Function&& f) const {
    for (const auto& [id, r] : records_) {
      f(r);
    }
  }

  /// Calls `f(record&)` for each stream and for the unordered record.
  template <typename Function>
  void for_each_incomplete(Function&& f) {
    for_each(f);
    f(unordered_);
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
    const auto found = records_.find(use.stream);
    return found == records_.end() || found->second.timeline.is_complete(use.freed);
  }

  [[nodiscard]] bool many() const noexcept { return records_.size() >= many_streams; }

  /// Whether it is time to look for finished streams.
  [[nodiscard]] bool crowded() const noexcept { return records_.size() >= sweep_at_; }

  /// Forgets the streams of which `finished(record)` says that all is complete; their blocks become
  /// quiet.
  template <typename Finished>
  void sweep(Finished&& finished) noexcept {
    several_seen_ = several_seen();
    for (auto i = records_.begin(); i != records_.end();) {
      record& r = i->second;
      if (r.pins != 0 || r.timeline.has_pending() || !finished(r)) {
        ++i;
        continue;
      }
      r.cache.move_to(quiet_.cache, last_use{});
      i = records_.erase(i);
    }
    sweep_at_ = std::max(many_streams, 2 * records_.size());
  }

  /// Whether a block in the record's cache is not known complete.
  [[nodiscard]] bool has_incomplete(const record& r) const noexcept {
    for (class_index i = 0; i < class_count; ++i) {
      const block* newest = r.cache.of(i).newest();
      if (newest != nullptr && !r.timeline.is_complete(newest->use.freed)) {
        return true;
      }
    }
    return false;
  }

 private:
  epoch last_epoch_ = 0;
  record quiet_;
  record unordered_;
  std::unordered_map<stream_id, record> records_;
  std::size_t sweep_at_ = many_streams;
  bool several_seen_ = false;
};

}  // namespace pagesift
