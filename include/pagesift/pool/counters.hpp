// A pool's counters, exact at every moment under the pool's lock.
#pragma once

#include <pagesift/core/statistics.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace pagesift {

/// Not thread-safe: the pool's lock guards it.
class pool_counters {
 public:
  std::uint64_t backend_allocations = 0;
  std::uint64_t backend_releases = 0;
  std::uint64_t events_recorded = 0;
  std::uint64_t stream_waits = 0;
  std::uint64_t fences = 0;
  std::uint64_t rejected_frees = 0;

  [[nodiscard]] std::size_t held() const noexcept { return held_; }
  [[nodiscard]] std::size_t in_use() const noexcept { return in_use_; }
  [[nodiscard]] std::size_t idle() const noexcept { return held_ - in_use_; }

  void acquired(std::size_t bytes) noexcept {
    held_ += bytes;
    peak_held_ = std::max(peak_held_, held_);
    ++backend_allocations;
  }

  void released(std::size_t bytes) noexcept {
    held_ -= bytes;
    ++backend_releases;
  }

  void handed_out(class_index index, std::size_t bytes, bool hit) noexcept {
    in_use_ += bytes;
    peak_in_use_ = std::max(peak_in_use_, in_use_);
    per_class& c = classes_[index];
    c.in_use_bytes += bytes;
    ++c.in_use_blocks;
    ++(hit ? c.hits : c.misses);
  }

  /// A block in use has given up `bytes` bytes.
  void shortened(class_index index, std::size_t bytes) noexcept {
    in_use_ -= bytes;
    classes_[index].in_use_bytes -= bytes;
  }

  void taken_back(class_index index, std::size_t bytes) noexcept {
    in_use_ -= bytes;
    classes_[index].in_use_bytes -= bytes;
    --classes_[index].in_use_blocks;
  }

  void reset_peaks() noexcept {
    peak_held_ = held_;
    peak_in_use_ = in_use_;
  }

  /// \throws std::bad_alloc
  [[nodiscard]] pool_stats report() const {
    pool_stats s;
    s.held = held_;
    s.in_use = in_use_;
    s.idle = idle();
    s.peak_held = peak_held_;
    s.peak_in_use = peak_in_use_;
    s.backend_allocations = backend_allocations;
    s.backend_releases = backend_releases;
    s.events_recorded = events_recorded;
    s.stream_waits = stream_waits;
    s.fences = fences;
    s.rejected_frees = rejected_frees;
    for (class_index i = 0; i < class_count; ++i) {
      const per_class& c = classes_[i];
      if (c.hits + c.misses != 0) {
        s.classes.push_back({i, block_bytes(i), c.in_use_bytes, c.in_use_blocks, c.hits, c.misses});
        s.hits += c.hits;
        s.misses += c.misses;
      }
    }
    return s;
  }

 private:
  struct per_class {
    std::size_t in_use_bytes = 0;
    std::size_t in_use_blocks = 0;
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
  };

  std::size_t held_ = 0;
  std::size_t in_use_ = 0;
  std::size_t peak_held_ = 0;
  std::size_t peak_in_use_ = 0;
  std::array<per_class, class_count> classes_{};
};

}  // namespace pagesift
