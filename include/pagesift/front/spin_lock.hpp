// A lock of two words that is held for a few dozen instructions, or now and then for longer.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace pagesift {

/// Waits until `done()`: spinning at first, then letting other threads run.
template <typename Done>
void spin_until(Done&& done) noexcept {
  constexpr int spins_before_yield = 256;  // about 10 us: longer than any hit takes
  for (int spins = 0; !done(); ++spins) {
    if (spins >= spins_before_yield) {
      std::this_thread::yield();
      continue;
    }
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield" ::: "memory");
#endif
  }
}

/// Threads get it in the order in which they came: one that locks and unlocks in a loop, as a
/// thread that reads statistics may, keeps no other out for long.
class spin_lock {
 public:
  /// Whether it was free and is now the caller's.
  [[nodiscard]] bool try_lock() noexcept {
    std::uint32_t free_turn = served_.load(std::memory_order_acquire);
    return next_.compare_exchange_strong(free_turn, free_turn + 1, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }

  void lock() noexcept {
    const std::uint32_t turn = next_.fetch_add(1, std::memory_order_relaxed);
    spin_until([this, turn] { return served_.load(std::memory_order_acquire) == turn; });
  }

  void unlock() noexcept {
    served_.store(served_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  /// In a forked child: the threads that wait are not here. Precondition: the caller holds it.
  void forget_waiters() noexcept {
    next_.store(served_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint32_t> next_{0};
  std::atomic<std::uint32_t> served_{0};
};

}  // namespace pagesift
