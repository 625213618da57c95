// The lock of a stream cache: held for a few dozen instructions, or by the slow path for longer.
#pragma once

#include <atomic>
#include <thread>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace pagesift {

/// A lock of one word. Those who hold it for a moment spin; whoever meets the slow path, which may
/// hold it for long, lets other threads run meanwhile.
class spin_lock {
 public:
  /// Whether it was free and is now the caller's.
  [[nodiscard]] bool try_lock() noexcept {
    return !held_.load(std::memory_order_relaxed) &&
           !held_.exchange(true, std::memory_order_acquire);
  }

  void lock() noexcept {
    while (!try_lock()) {
      wait();
    }
  }

  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  /// Until it looks free.
  void wait() const noexcept {
    constexpr int spins_before_yield = 256;  // about 10 us: longer than any hit takes
    for (int spins = 0; held_.load(std::memory_order_relaxed); ++spins) {
      if (spins >= spins_before_yield) {
        std::this_thread::yield();
      } else {
        pause();
      }
    }
  }

  /// Leaves the core to its other thread for a moment.
  static void pause() noexcept {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield" ::: "memory");
#endif
  }

  std::atomic<bool> held_{false};
};

}  // namespace pagesift
