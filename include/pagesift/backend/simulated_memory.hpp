// Addresses of the simulated device: one reservation of address space that nobody can touch.
#pragma once

#include <pagesift/core/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <new>
#include <sys/mman.h>

namespace pagesift::simulation {

/// Hands out pieces of an inaccessible reservation: any read or write through one faults.
/// The lowest free address comes first, so that released memory is soon given out again and a
/// stale use of it is noticed.
class address_space {
 public:
  static constexpr std::size_t piece_alignment = 2 * mebibyte;

  /// \throws std::bad_alloc where the system does not reserve `bytes` bytes of address space.
  explicit address_space(std::size_t bytes)
      : bytes_{bytes}, base_{mmap(nullptr, bytes, PROT_NONE, flags, -1, 0)} {
    if (base_ == MAP_FAILED) {
      throw std::bad_alloc{};
    }
    const auto begin = reinterpret_cast<std::uintptr_t>(base_);
    const std::uintptr_t first = align_up(begin, piece_alignment);
    free_.emplace(first, bytes - (first - begin));
  }
  address_space(const address_space&) = delete;
  address_space& operator=(const address_space&) = delete;
  ~address_space() { munmap(base_, bytes_); }

  /// A piece of `bytes` bytes that starts `skew` bytes behind a multiple of piece_alignment, or
  /// nullptr where no hole is long enough.
  [[nodiscard]] void* take(std::size_t bytes, std::size_t skew) {
    if (bytes > bytes_) {
      return nullptr;
    }
    const std::size_t span = align_up(bytes + skew, piece_alignment);
    for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
      const auto [begin, hole_bytes] = *hole;
      if (hole_bytes >= span) {
        free_.erase(hole);
        if (hole_bytes > span) {
          free_.emplace(begin + span, hole_bytes - span);
        }
        taken_.emplace(begin + skew, piece{bytes, begin, span});
        taken_bytes_ += bytes;
        return reinterpret_cast<void*>(begin + skew);
      }
    }
    return nullptr;
  }

  /// Whether `p` and `bytes` name exactly one piece that is taken.
  [[nodiscard]] bool is_piece(const void* p, std::size_t bytes) const {
    const auto found = taken_.find(reinterpret_cast<std::uintptr_t>(p));
    return found != taken_.end() && found->second.bytes == bytes;
  }

  /// Whether the addresses from `begin` up to `end` lie in one piece that is taken.
  [[nodiscard]] bool holds(std::uintptr_t begin, std::uintptr_t end) const {
    const auto next = taken_.upper_bound(begin);
    return next != taken_.begin() && end <= std::prev(next)->first + std::prev(next)->second.bytes;
  }

  /// Precondition: `p` was taken.
  void give_back(const void* p) {
    const auto found = taken_.find(reinterpret_cast<std::uintptr_t>(p));
    const piece given = found->second;
    taken_.erase(found);
    taken_bytes_ -= given.bytes;
    auto hole = free_.emplace(given.begin, given.span).first;
    hole = merged_with_next(hole);
    if (hole != free_.begin()) {
      merged_with_next(std::prev(hole));
    }
  }

  [[nodiscard]] std::size_t taken_bytes() const noexcept { return taken_bytes_; }

 private:
  struct piece {
    std::size_t bytes;     // what was asked for
    std::uintptr_t begin;  // the hole it came from
    std::size_t span;
  };
  using holes = std::map<std::uintptr_t, std::size_t>;

  static constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

  holes::iterator merged_with_next(holes::iterator hole) {
    const auto next = std::next(hole);
    if (next != free_.end() && hole->first + hole->second == next->first) {
      hole->second += next->second;
      free_.erase(next);
    }
    return hole;
  }

  std::size_t bytes_;
  void* base_;
  holes free_;
  std::map<std::uintptr_t, piece> taken_;
  std::size_t taken_bytes_ = 0;
};

}  // namespace pagesift::simulation
