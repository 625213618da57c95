// A memory fence that costs those who pass it often nothing, and those who pass it seldom a call
// into the system.
#pragma once

#include <atomic>

#if defined(__SANITIZE_THREAD__)
#define PAGESIFT_HAS_ASYMMETRIC_FENCE 0  // ThreadSanitizer cannot see what orders the accesses
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PAGESIFT_HAS_ASYMMETRIC_FENCE 0
#endif
#endif
#if !defined(PAGESIFT_HAS_ASYMMETRIC_FENCE)
#if defined(__linux__)
#define PAGESIFT_HAS_ASYMMETRIC_FENCE 1
#else
#define PAGESIFT_HAS_ASYMMETRIC_FENCE 0
#endif
#endif

#if PAGESIFT_HAS_ASYMMETRIC_FENCE
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace pagesift {

/// The two sides of an asymmetric fence: of a thread that stores `a`, passes the light side and
/// loads `b`, and one that stores `b`, passes the heavy side and loads `a`, at least one sees what
/// the other stored. The light side is nothing but a word to the compiler; the heavy side makes
/// every thread of the process pass a full fence (Linux: membarrier, private expedited).
class asymmetric_fence {
 public:
  /// Whether the system has it; asked once in a process.
  [[nodiscard]] static bool available() noexcept {
#if PAGESIFT_HAS_ASYMMETRIC_FENCE
    static const bool registered =
        syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    return registered;
#else
    return false;
#endif
  }

  static void light() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

  /// Precondition: `available()`.
  static void heavy() noexcept {
#if PAGESIFT_HAS_ASYMMETRIC_FENCE
    (void)syscall(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
#endif
  }
};

}  // namespace pagesift
