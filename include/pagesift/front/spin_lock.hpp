// A lock of one word that is held for a few dozen instructions, or now and then for longer.
#pragma once

#include <atomic>
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

class spin_lock {
 public:
  /// Whether it was free and is now the caller's.
  [[nodiscard]] bool try_lock() noexcept {
    return !held_.load(std::memory_order_relaxed) &&
           !held_.exchange(true, std::memory_order_acquire);
  }

  void lock() noexcept {
    while (!try_lock()) {
      spin_until([this] { return !held_.load(std::memory_order_relaxed); });
    }
  }

  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace pagesift
