// Who used which bytes when, and which bytes are in a user's hands.
#pragma once

#include <pagesift/backend/simulated_clock.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

namespace pagesift::simulation {

/// Bytes from `begin` up to, not including, `end`.
struct byte_range {
  byte_range(const void* p, std::size_t bytes)
      : begin{reinterpret_cast<std::uintptr_t>(p)}, end{begin + bytes} {}
  byte_range() : byte_range{nullptr, 0} {}

  std::uintptr_t begin;
  std::uintptr_t end;
};

/// One use of some bytes: work submitted at `tick` of `lane`.
struct memory_use {
  lane_index lane;
  tick_count tick;
};

/// Remembers for every byte the uses that no later use of it is known to follow.
class use_map {
 public:
  /// Notes a use whose stream knows `position` at that point. Uses that `position` already covers
  /// are dropped: whoever comes after the new use comes after them too.
  void add(byte_range range, memory_use use, const vector_clock& position) {
    forget(range, position);
    std::uintptr_t at = range.begin;
    auto next = segments_.lower_bound(range.begin);
    while (at < range.end) {
      if (next != segments_.end() && next->first == at) {
        next->second.uses.push_back(use);
        at = next->second.end;
        ++next;
      } else {
        const bool last = next == segments_.end() || next->first >= range.end;
        const std::uintptr_t end = last ? range.end : next->first;
        segments_.emplace_hint(next, at, segment{end, {use}});
        at = end;
      }
    }
  }

  /// A use of any byte of `range` that `position` does not come after.
  [[nodiscard]] std::optional<memory_use> uncovered(byte_range range,
                                                    const vector_clock& position) const {
    for (auto at = first_in(range); at != segments_.end() && at->first < range.end; ++at) {
      for (const memory_use& use : at->second.uses) {
        if (position.at(use.lane) < use.tick) {
          return use;
        }
      }
    }
    return std::nullopt;
  }

  /// Drops the uses of `range` that `position` comes after.
  void forget(byte_range range, const vector_clock& position) {
    split(range.begin);
    split(range.end);
    auto at = segments_.lower_bound(range.begin);
    while (at != segments_.end() && at->first < range.end) {
      auto& uses = at->second.uses;
      const auto covered = [&](const memory_use& use) { return position.at(use.lane) >= use.tick; };
      uses.erase(std::remove_if(uses.begin(), uses.end(), covered), uses.end());
      at = uses.empty() ? segments_.erase(at) : std::next(at);
    }
  }

 private:
  struct segment {
    std::uintptr_t end;
    std::vector<memory_use> uses;
  };
  using segments = std::map<std::uintptr_t, segment>;

  [[nodiscard]] segments::const_iterator first_in(byte_range range) const {
    auto at = segments_.upper_bound(range.begin);
    if (at != segments_.begin() && std::prev(at)->second.end > range.begin) {
      --at;
    }
    return at;
  }

  void split(std::uintptr_t address) {
    auto at = segments_.lower_bound(address);
    if (at == segments_.begin()) {
      return;
    }
    --at;
    if (at->second.end > address) {
      segments_.emplace(address, at->second);
      at->second.end = address;
    }
  }

  segments segments_;  // by begin; they do not overlap
};

/// The blocks in users' hands.
class live_blocks {
 public:
  /// Whether any byte of `range` is in a user's hands.
  [[nodiscard]] bool overlaps(byte_range range) const {
    const auto next = blocks_.lower_bound(range.end);
    return next != blocks_.begin() && std::prev(next)->second > range.begin;
  }

  void add(byte_range range) { blocks_.emplace(range.begin, range.end); }

  /// Whether `range` was one block.
  bool remove(byte_range range) {
    const auto found = blocks_.find(range.begin);
    if (found == blocks_.end() || found->second != range.end) {
      return false;
    }
    blocks_.erase(found);
    return true;
  }

 private:
  std::map<std::uintptr_t, std::uintptr_t> blocks_;  // begin -> end
};

}  // namespace pagesift::simulation
