// Which classes were asked for since the last end_batch.
#pragma once

#include <pagesift/front/cache_registry.hpp>

#include <array>
#include <cstdint>

namespace pagesift {

/// Compares what the caches counted with what they had counted when the batch before ended.
class batch_requests {
 public:
  /// Ends a batch. Precondition: every cache is locked.
  void end(const cache_registry& caches) noexcept {
    touched_.fill(false);
    for (class_index i = 0; i < class_count; ++i) {
      const std::uint64_t now = caches.traffic(i).handed_out;
      if (now != handed_out_[i]) {
        touched_[waiting_for.of[i]] = true;
        handed_out_[i] = now;
      }
    }
  }

  /// Whether the batch that ended last had a request whose block waits in class `waiting`.
  [[nodiscard]] bool touched(class_index waiting) const noexcept { return touched_[waiting]; }

 private:
  std::array<std::uint64_t, class_count> handed_out_{};
  std::array<bool, class_count> touched_{};
};

}  // namespace pagesift
