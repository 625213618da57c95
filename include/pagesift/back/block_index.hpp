// Which block of a slab an offset lies in, without a division.
#pragma once

#include <pagesift/core/size_class.hpp>

#include <cstddef>
#include <cstdint>

namespace pagesift {

/// Divides an offset in a run by the size of its blocks: by a multiplication with the reciprocal,
/// rounded up. Counted in units of 256 bytes the offset is below 2^17 and the size at most 2^15, so
/// the error of the reciprocal, below 1 / 2^40, adds less than 2^-23 to the quotient: too little to
/// reach the next integer, which is at least 2^-15 away.
class block_index {
 public:
  /// Blocks of a slab are at most so long, and slabs shorter.
  static constexpr std::size_t max_block_bytes = (std::size_t{1} << 15) * default_alignment;
  static constexpr std::size_t max_slab_bytes = (std::size_t{1} << 17) * default_alignment;

  /// For a run that is one block: every offset lies in block 0.
  constexpr block_index() noexcept = default;

  /// Precondition: `block_bytes` is a multiple of 256 and at most `max_block_bytes`.
  constexpr explicit block_index(std::size_t block_bytes) noexcept
      : reciprocal_{divide_round_up(std::size_t{1} << 40, block_bytes / default_alignment)} {}

  /// Precondition: `offset < max_slab_bytes`, unless the run is one block.
  [[nodiscard]] constexpr std::size_t of(std::size_t offset) const noexcept {
    return static_cast<std::size_t>((offset / default_alignment * reciprocal_) >> 40);
  }

 private:
  std::uint64_t reciprocal_ = 0;
};

}  // namespace pagesift
