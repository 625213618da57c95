// Physical memory of the simulated device, and which of it stands behind which addresses.
#pragma once

#include <pagesift/backend/simulated_uses.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace pagesift {

/// A piece of physical memory of the simulated device. Numbers never repeat; 0 is none.
struct simulated_physical {
  std::uint64_t number = 0;

  friend constexpr bool operator==(simulated_physical a, simulated_physical b) noexcept {
    return a.number == b.number;
  }
  friend constexpr bool operator!=(simulated_physical a, simulated_physical b) noexcept {
    return !(a == b);
  }
};

namespace simulation {

/// Pieces of physical memory and their mappings. A piece lives until it is destroyed and mapped
/// nowhere, as in CUDA.
class mapped_memory {
 public:
  [[nodiscard]] simulated_physical create(std::size_t bytes) {
    pieces_.emplace(++last_number_, piece{bytes, 0, false});
    physical_bytes_ += bytes;
    return {last_number_};
  }

  /// Bytes of a piece that may be named; 0 where it was destroyed or never existed.
  [[nodiscard]] std::size_t bytes_of(simulated_physical h) const {
    const auto found = pieces_.find(h.number);
    return found != pieces_.end() && !found->second.destroyed ? found->second.bytes : 0;
  }

  /// Precondition: `bytes_of(h)` is not 0.
  void destroy(simulated_physical h) {
    const auto found = pieces_.find(h.number);
    found->second.destroyed = true;
    drop_if_gone(found);
  }

  /// Preconditions: nothing is mapped in `range`, and `h` is a piece of its size.
  void map(byte_range range, simulated_physical h) {
    mappings_.emplace(range.begin, mapping{range.end, h.number});
    ++pieces_.find(h.number)->second.mappings;
    mapped_bytes_ += range.end - range.begin;
  }

  /// Precondition: `is_whole(range)`.
  void unmap(byte_range range) {
    auto at = mappings_.find(range.begin);
    while (at != mappings_.end() && at->first < range.end) {
      const auto behind = pieces_.find(at->second.piece);
      --behind->second.mappings;
      mapped_bytes_ -= at->second.end - at->first;
      drop_if_gone(behind);
      at = mappings_.erase(at);
    }
  }

  /// Whether something is mapped at any address of `range`.
  [[nodiscard]] bool maps_any(byte_range range) const {
    const auto next = mappings_.lower_bound(range.end);
    return next != mappings_.begin() && std::prev(next)->second.end > range.begin;
  }

  /// Whether something is mapped at every address of `range`.
  [[nodiscard]] bool maps_all(byte_range range) const {
    std::uintptr_t at = range.begin;
    for (auto next = first_in(range); next != mappings_.end() && next->first <= at; ++next) {
      at = next->second.end;
      if (at >= range.end) {
        return true;
      }
    }
    return false;
  }

  /// Whether `range` is one or more whole mappings side by side.
  [[nodiscard]] bool is_whole(byte_range range) const {
    const auto next = mappings_.lower_bound(range.end);
    return next != mappings_.begin() && std::prev(next)->second.end == range.end &&
           mappings_.count(range.begin) != 0 && maps_all(range);
  }

  /// Whether a byte mapped in `range` is mapped at a second address too.
  [[nodiscard]] bool maps_twice(byte_range range) const {
    for (auto at = first_in(range); at != mappings_.end() && at->first < range.end; ++at) {
      if (pieces_.find(at->second.piece)->second.mappings > 1) {
        return true;
      }
    }
    return false;
  }

  /// Bytes of all pieces that live.
  [[nodiscard]] std::size_t physical_bytes() const noexcept { return physical_bytes_; }

  /// Addresses with memory behind them.
  [[nodiscard]] std::size_t mapped_bytes() const noexcept { return mapped_bytes_; }

 private:
  struct piece {
    std::size_t bytes;
    std::size_t mappings;
    bool destroyed;
  };
  struct mapping {
    std::uintptr_t end;
    std::uint64_t piece;
  };
  using pieces = std::map<std::uint64_t, piece>;
  using mappings = std::map<std::uintptr_t, mapping>;

  [[nodiscard]] mappings::const_iterator first_in(byte_range range) const {
    const auto next = mappings_.upper_bound(range.begin);
    const bool reaches_in = next != mappings_.begin() && std::prev(next)->second.end > range.begin;
    return reaches_in ? std::prev(next) : next;
  }

  void drop_if_gone(pieces::iterator at) {
    if (at->second.destroyed && at->second.mappings == 0) {
      physical_bytes_ -= at->second.bytes;
      pieces_.erase(at);
    }
  }

  pieces pieces_;      // by number
  mappings mappings_;  // by first address; they do not overlap
  std::uint64_t last_number_ = 0;
  std::size_t physical_bytes_ = 0;
  std::size_t mapped_bytes_ = 0;
};

}  // namespace simulation
}  // namespace pagesift
