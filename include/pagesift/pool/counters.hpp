// A pool's counters: its own, and those of its caches added up.
#pragma once

#include <pagesift/core/statistics.hpp>
#include <pagesift/front/cache_registry.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pagesift {

/// The pool's mutex guards it; `in_use`, `idle` and `report` are exact where every cache is locked.
class pool_counters {
 public:
  explicit pool_counters(cache_registry& caches) noexcept : caches_{caches} {}

  std::uint64_t backend_allocations = 0;
  std::uint64_t backend_releases = 0;
  std::uint64_t events_recorded = 0;
  std::uint64_t stream_waits = 0;
  std::uint64_t fences = 0;
  std::atomic<std::uint64_t> rejected_frees{0};

  [[nodiscard]] std::size_t held() const noexcept { return held_; }
  [[nodiscard]] std::size_t in_use() const noexcept {
    caches_.settle();
    return caches_.use.in_use();
  }
  [[nodiscard]] std::size_t idle() const noexcept { return held_ - in_use(); }

  void acquired(std::size_t bytes) noexcept {
    held_ += bytes;
    peak_held_ = std::max(peak_held_, held_);
    ++backend_allocations;
  }

  void released(std::size_t bytes) noexcept {
    held_ -= bytes;
    ++backend_releases;
  }

  /// A request for class `index` had to wait for memory from the backend.
  void missed(class_index index) noexcept { ++misses_[index]; }

  void reset_peaks() noexcept {
    peak_held_ = held_;
    caches_.settle();
    caches_.use.reset_peak();
    caches_.exact.reset_peak();
  }

  /// \throws std::bad_alloc
  [[nodiscard]] pool_stats report(bool exact_peaks) const {
    pool_stats s;
    s.held = held_;
    s.in_use = in_use();
    s.idle = s.held - s.in_use;
    s.peak_held = peak_held_;
    s.peak_in_use = exact_peaks ? caches_.exact.peak() : std::min(caches_.use.peak(), peak_held_);
    s.backend_allocations = backend_allocations;
    s.backend_releases = backend_releases;
    s.events_recorded = events_recorded;
    s.stream_waits = stream_waits;
    s.fences = fences;
    s.rejected_frees = rejected_frees.load(std::memory_order_relaxed);
    for (class_index i = 0; i < class_count; ++i) {
      add_class(s, i);
    }
    return s;
  }

 private:
  /// \throws std::bad_alloc
  void add_class(pool_stats& s, class_index i) const {
    const class_traffic sum = caches_.traffic(i);
    if (sum.handed_out == 0) {
      return;
    }
    const std::uint64_t hits = sum.handed_out - misses_[i];
    s.classes.push_back(
        {i, block_bytes(i), sum.in_use_bytes, sum.handed_out - sum.taken_back, hits, misses_[i]});
    s.hits += hits;
    s.misses += misses_[i];
  }

  cache_registry& caches_;
  std::size_t held_ = 0;
  std::size_t peak_held_ = 0;
  std::array<std::uint64_t, class_count> misses_{};
};

}  // namespace pagesift
