// Whether calls may take the short way at all.
#pragma once

#include <atomic>

namespace pagesift {

/// Closed while anything is known that only the slow path deals with; a hit then asks nothing more
/// than whether it is open. May be asked by any thread at any time.
///
/// A capture closes it to frees only: a request asks its stream in any case.
class hit_gate {
 public:
  /// What may close it; each on its own.
  enum reason : unsigned { captures = 1, watched = 2, forked = 4, exiting = 8, reset = 16 };

  [[nodiscard]] bool open() const noexcept { return closed_.load(std::memory_order_relaxed) == 0; }
  [[nodiscard]] bool open_to_requests() const noexcept {
    return (closed_.load(std::memory_order_relaxed) & ~unsigned{captures}) == 0;
  }

  /// Whether it is closed for that reason.
  [[nodiscard]] bool closed_by(reason why) const noexcept {
    return (closed_.load(std::memory_order_relaxed) & why) != 0;
  }

  /// Whether the process has no way to the backend any more: in a forked child, at its end, or
  /// since the device was found to be reset. That never changes back.
  [[nodiscard]] bool out_of_reach() const noexcept {
    return (closed_.load(std::memory_order_relaxed) & (forked | exiting | reset)) != 0;
  }

  /// Precondition: no other thread gives the same reason another value meanwhile. Writes only where
  /// that changes something: all threads read it at every hit.
  void set(reason why, bool closed) noexcept {
    if (closed == closed_by(why)) {
      return;
    }
    if (closed) {
      closed_.fetch_or(why, std::memory_order_relaxed);
    } else {
      closed_.fetch_and(~static_cast<unsigned>(why), std::memory_order_relaxed);
    }
  }

 private:
  std::atomic<unsigned> closed_{0};
};

}  // namespace pagesift
