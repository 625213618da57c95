// The lock of a stream cache. Most caches are only ever used by one thread, which then needs no
// atomic exchange: two of them were a quarter of a hit
// (docs/decisions/0011-a-lock-for-each-cache.md).
#pragma once

#include <pagesift/front/asymmetric_fence.hpp>
#include <pagesift/front/spin_lock.hpp>

#include <atomic>

namespace pagesift {

/// Names the calling thread while it lives.
using thread_mark = const void*;
[[nodiscard]] inline thread_mark this_thread_mark() noexcept {
  static thread_local char mark;
  return &mark;
}

/// A lock that may be biased to one thread, its owner, which enters it with plain loads and stores.
///
/// Anybody else who locks it takes the bias away for good. The slow path, which locks every cache
/// now and then, only suspends it: it calls `claim` on each, passes the heavy side of the fence
/// once if any of them asks for it, and then `wait_for_owner` on each.
class cache_lock {
 public:
  /// Makes a thread the owner. Precondition: no other thread knows the lock yet.
  void bias_to(thread_mark owner) noexcept {
    if (asymmetric_fence::available()) {
      owner_.store(owner, std::memory_order_relaxed);
    }
  }

  /// Enters as the owner, to leave by `leave`. False, and nothing done, where the caller is not
  /// the owner or somebody else has claimed the lock.
  [[nodiscard]] bool enter(thread_mark caller) noexcept {
    if (owner_.load(std::memory_order_relaxed) != caller) {
      return false;
    }
    inside_.store(true, std::memory_order_relaxed);
    asymmetric_fence::light();
    if (claimed_.load(std::memory_order_acquire)) {
      inside_.store(false, std::memory_order_release);
      return false;
    }
    return true;
  }
  void leave() noexcept { inside_.store(false, std::memory_order_release); }

  /// For those who are not the owner, and for the owner where it could not enter.
  /// \returns false, and nothing done, where another thread holds it.
  [[nodiscard]] bool try_lock(thread_mark caller) noexcept {
    if (!others_.try_lock()) {
      return false;
    }
    end_bias(caller);
    return true;
  }
  void lock(thread_mark caller) noexcept {
    others_.lock();
    end_bias(caller);
  }
  void unlock() noexcept { others_.unlock(); }

  /// Keeps everybody out who is not in yet. \returns whether the heavy side of the fence has to be
  /// passed before `wait_for_owner`.
  [[nodiscard]] bool claim(thread_mark caller) noexcept {
    others_.lock();
    suspended_ = biased();
    if (!suspended_) {
      return false;
    }
    claimed_.store(true, std::memory_order_relaxed);
    return !biased_to(caller);
  }
  void wait_for_owner() const noexcept {
    spin_until([this] { return !inside_.load(std::memory_order_acquire); });
  }
  void unclaim() noexcept {
    if (suspended_) {
      claimed_.store(false, std::memory_order_release);
    }
    others_.unlock();
  }

  /// In a forked child: whoever waits, or was about to find out that it may not enter, is not here.
  /// Precondition: the caller has claimed it.
  void forget_other_threads() noexcept {
    inside_.store(false, std::memory_order_relaxed);
    others_.forget_waiters();
  }

  /// Whether the owner may enter, once nobody claims the lock.
  [[nodiscard]] bool biased_to(thread_mark caller) const noexcept {
    return owner_.load(std::memory_order_relaxed) == caller;
  }

 private:
  [[nodiscard]] bool biased() const noexcept {
    return owner_.load(std::memory_order_relaxed) != nullptr;
  }

  /// Precondition: the caller holds `others_`. `claimed_` stays set: the former owner may have
  /// looked at `owner_` long ago and be about to enter.
  void end_bias(thread_mark caller) noexcept {
    if (biased() && !biased_to(caller)) {
      claimed_.store(true, std::memory_order_relaxed);
      asymmetric_fence::heavy();
      wait_for_owner();
      owner_.store(nullptr, std::memory_order_relaxed);
    }
  }

  std::atomic<thread_mark> owner_{nullptr};
  std::atomic<bool> inside_{false};
  std::atomic<bool> claimed_{false};
  bool suspended_ = false;  // guarded by others_
  spin_lock others_;
};

/// Holds a cache's lock in a scope, as its owner where the caller is that.
class cache_guard {
 public:
  explicit cache_guard(cache_lock& lock) noexcept : lock_{lock} {
    const thread_mark caller = this_thread_mark();
    entered_ = lock_.enter(caller);
    if (!entered_) {
      lock_.lock(caller);
    }
  }
  ~cache_guard() {
    if (entered_) {
      lock_.leave();
    } else {
      lock_.unlock();
    }
  }
  cache_guard(const cache_guard&) = delete;
  cache_guard& operator=(const cache_guard&) = delete;

 private:
  cache_lock& lock_;
  bool entered_;
};

}  // namespace pagesift
