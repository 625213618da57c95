// All caches of a pool, the pool's mutex, and the lock that stops them all.
#pragma once

#include <pagesift/front/stream_cache.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

namespace pagesift {

/// Bytes in users' hands as the caches report them. Exact where every cache is locked.
class use_count {
 public:
  [[nodiscard]] std::size_t in_use() const noexcept { return in_use_; }

  /// Never below the true peak. Above it only where several caches were used at once: each
  /// counts as if it had been at its own peak at the same moment as the others.
  [[nodiscard]] std::size_t peak() const noexcept { return peak_; }
  void reset_peak() noexcept { peak_ = in_use_; }

  /// Takes over what the caches moved since the last time, having added up over all of them what
  /// each moved, and the most that each had moved.
  void add(std::ptrdiff_t moved, std::ptrdiff_t most_moved) noexcept {
    peak_ = std::max(peak_, in_use_ + static_cast<std::size_t>(most_moved));
    in_use_ += static_cast<std::size_t>(moved);
  }

 private:
  std::size_t in_use_ = 0;
  std::size_t peak_ = 0;
};

/// Bytes in users' hands, kept up at each call for pools that want exact peaks.
class exact_use_count {
 public:
  void handed_out(std::size_t bytes) noexcept {
    const std::size_t now = in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::size_t peak = peak_.load(std::memory_order_relaxed);
    while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
  }
  void taken_back(std::size_t bytes) noexcept {
    in_use_.fetch_sub(bytes, std::memory_order_relaxed);
  }

  [[nodiscard]] std::size_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }
  void reset_peak() noexcept {
    peak_.store(in_use_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }

 private:
  std::atomic<std::size_t> in_use_{0};
  std::atomic<std::size_t> peak_{0};
};

/// Owns the caches. They are never destroyed while the pool lives, so a thread may keep pointing at
/// one; whose blocks it holds it says itself.
class cache_registry {
 public:
  std::mutex mutex;  ///< the pool's
  use_count use;
  exact_use_count exact;

  /// A new cache, whose lock is biased to the calling thread if `own` says that it will use it
  /// most. Precondition: the caller holds `mutex` and no cache is locked by it.
  /// \throws std::bad_alloc
  [[nodiscard]] stream_cache& make(bool own) {
    stream_cache& made = caches_.emplace_back();
    if (own) {
      made.lock.bias_to(this_thread_mark());
    }
    return made;
  }

  void lock_all() noexcept {
    bool fence_needed = false;
    for (stream_cache& cache : caches_) {
      const bool needed = cache.lock.claim(this_thread_mark());
      fence_needed = fence_needed || needed;
    }
    if (fence_needed) {
      asymmetric_fence::heavy();
    }
    for (stream_cache& cache : caches_) {
      cache.lock.wait_for_owner();
    }
    settle();
  }

  void unlock_all() noexcept {
    settle();
    for (stream_cache& cache : caches_) {
      cache.lock.unclaim();
    }
  }

  /// In a forked child. Precondition: the forking thread has locked every cache.
  void forget_other_threads() noexcept {
    for (stream_cache& cache : caches_) {
      cache.lock.forget_other_threads();
    }
  }

  /// Brings `use` up to date. Precondition: every cache is locked.
  void settle() noexcept {
    std::ptrdiff_t moved = 0;
    std::ptrdiff_t most_moved = 0;
    for (stream_cache& cache : caches_) {
      moved += cache.moved_bytes();
      most_moved += cache.most_moved_bytes();
      cache.settle();
    }
    use.add(moved, most_moved);
  }

  /// Calls `f(cache)` for each cache there is.
  template <typename Function>
  void for_each(Function&& f) const {
    for (const stream_cache& cache : caches_) {
      f(cache);
    }
  }

  /// What passed through all caches of class `index`. Precondition: every cache is locked.
  [[nodiscard]] class_traffic traffic(class_index index) const noexcept {
    class_traffic sum;
    for_each([&sum, index](const stream_cache& cache) {
      const class_traffic& part = cache.traffic(index);
      sum.handed_out += part.handed_out;
      sum.taken_back += part.taken_back;
      sum.in_use_bytes += part.in_use_bytes;
    });
    return sum;
  }

  /// Blocks taken back so far. Precondition: every cache is locked.
  [[nodiscard]] std::uint64_t frees() const noexcept {
    std::uint64_t sum = 0;
    for (class_index i = 0; i < class_count; ++i) {
      sum += traffic(i).taken_back;
    }
    return sum;
  }

 private:
  std::deque<stream_cache> caches_;
};

/// The pool's mutex, and on request every cache's lock too: then nobody else is anywhere in the
/// pool. `unlock` gives up whatever is held and `lock` takes the same again.
class pool_lock {
 public:
  explicit pool_lock(cache_registry& caches) : caches_{caches} { caches_.mutex.lock(); }
  pool_lock(const pool_lock&) = delete;
  pool_lock& operator=(const pool_lock&) = delete;
  ~pool_lock() { unlock(); }

  /// Locks every cache, if that was not done yet.
  void freeze() noexcept {
    if (!frozen_) {
      caches_.lock_all();
      frozen_ = true;
    }
  }

  /// Lets hits go on again; the mutex stays locked.
  void thaw() noexcept {
    if (frozen_) {
      caches_.unlock_all();
      frozen_ = false;
    }
  }

  [[nodiscard]] bool frozen() const noexcept { return frozen_; }

  void unlock() noexcept {
    if (frozen_) {
      caches_.unlock_all();
    }
    caches_.mutex.unlock();
  }

  void lock() {
    caches_.mutex.lock();
    if (frozen_) {
      caches_.lock_all();
    }
  }

 private:
  cache_registry& caches_;
  bool frozen_ = false;
};

/// Lets hits go on in a scope, if every cache was locked; they are locked again at its end.
class thawed {
 public:
  explicit thawed(pool_lock& lock) noexcept : lock_{lock}, was_frozen_{lock.frozen()} {
    lock_.thaw();
  }
  ~thawed() {
    if (was_frozen_) {
      lock_.freeze();
    }
  }
  thawed(const thawed&) = delete;
  thawed& operator=(const thawed&) = delete;

 private:
  pool_lock& lock_;
  bool was_frozen_;
};

}  // namespace pagesift
