// What the memory of the simulated device holds, as far as anybody has written to it.
#pragma once

#include <pagesift/backend/simulated_uses.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>

namespace pagesift::simulation {

/// Remembers stretches of equal bytes, so that filling a gigabyte takes no gigabyte. Bytes that
/// nobody has written are 0. Writes take effect when they are submitted.
class contents {
 public:
  void fill(byte_range range, unsigned char byte) {
    clear(range);
    if (range.begin != range.end) {
      stretches_.emplace(range.begin, stretch{range.end, byte});
    }
  }

  /// The bytes are 0 again: the memory has gone.
  void clear(byte_range range) {
    split(range.begin);
    split(range.end);
    stretches_.erase(stretches_.lower_bound(range.begin), stretches_.lower_bound(range.end));
  }

  void read(void* to, byte_range range) const {
    auto* const bytes = static_cast<unsigned char*>(to);
    std::memset(bytes, 0, range.end - range.begin);
    auto at = stretches_.upper_bound(range.begin);
    at = at == stretches_.begin() ? at : std::prev(at);
    for (; at != stretches_.end() && at->first < range.end; ++at) {
      const std::uintptr_t begin = std::max(at->first, range.begin);
      const std::uintptr_t end = std::min(at->second.end, range.end);
      if (begin < end) {
        std::memset(bytes + (begin - range.begin), at->second.byte, end - begin);
      }
    }
  }

 private:
  struct stretch {
    std::uintptr_t end;
    unsigned char byte;
  };

  /// Lets no stretch go across `address`.
  void split(std::uintptr_t address) {
    const auto next = stretches_.lower_bound(address);
    if (next != stretches_.begin() && std::prev(next)->second.end > address) {
      stretch& before = std::prev(next)->second;
      stretches_.emplace_hint(next, address, before);
      before.end = address;
    }
  }

  std::map<std::uintptr_t, stretch> stretches_;  // by begin; they do not overlap
};

}  // namespace pagesift::simulation
