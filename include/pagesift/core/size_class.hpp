// The block sizes that exist: steps of 256 bytes up to 2 KiB, eight per power of two above.
#pragma once

#include <pagesift/core/bytes.hpp>

#include <cstddef>

namespace pagesift {

/// Every block starts at a multiple of this many bytes unless more is asked for. CUB re-aligns its
/// temporary storage to 256 bytes, and device code may load 16 bytes at a time from its start.
inline constexpr std::size_t default_alignment = 256;

/// Largest alignment a request may ask for: one page of the page heap.
inline constexpr std::size_t max_alignment = 2 * mebibyte;

/// Largest size that has a class. Anything above exceeds every address space in use.
inline constexpr std::size_t max_block_bytes = std::size_t{1} << 62;

/// A size class, by its place in ascending order of block size: 0 is 256 bytes.
using class_index = unsigned;

namespace size_class_rules {
inline constexpr unsigned linear_log2 = 11;  // classes are 256 bytes apart up to 2 KiB
inline constexpr unsigned linear_classes = 8;
inline constexpr unsigned classes_per_doubling_log2 = 3;
inline constexpr unsigned classes_per_doubling = 1U << classes_per_doubling_log2;
}  // namespace size_class_rules

/// The class of a request of `bytes`; 0 bytes get the smallest block.
/// For n >= 1 and c = class_of(n): block_bytes(c) >= n and block_bytes(c) - n <= max(n / 8, 255).
/// \throws size_overflow above max_block_bytes.
[[nodiscard]] constexpr class_index class_of(std::size_t bytes) {
  using namespace size_class_rules;
  if (bytes > max_block_bytes) {
    throw size_overflow{bytes, 1};
  }
  if (bytes <= (std::size_t{1} << linear_log2)) {
    return bytes == 0 ? 0 : static_cast<class_index>((bytes - 1) / default_alignment);
  }
  const unsigned doubling = floor_log2(bytes - 1);
  const unsigned step_log2 = doubling - classes_per_doubling_log2;
  // At least classes_per_doubling, and less than twice that.
  const auto step = static_cast<class_index>((bytes - 1) >> step_log2);
  return linear_classes + (doubling - linear_log2) * classes_per_doubling +
         (step - classes_per_doubling);
}

/// Size in bytes of the blocks of class `index`. Precondition: `index < class_count`.
[[nodiscard]] constexpr std::size_t block_bytes(class_index index) noexcept {
  using namespace size_class_rules;
  if (index < linear_classes) {
    return (std::size_t{index} + 1) * default_alignment;
  }
  const unsigned doubling = (index - linear_classes) / classes_per_doubling;
  const std::size_t step = (index - linear_classes) % classes_per_doubling;
  return (classes_per_doubling + step + 1) << (linear_log2 - classes_per_doubling_log2 + doubling);
}

/// How many classes there are.
inline constexpr class_index class_count = class_of(max_block_bytes) + 1;

/// The class of a request of `bytes` whose block must start at a multiple of `alignment`.
/// The block size is then a multiple of `alignment`, so blocks laid side by side stay aligned.
/// \throws size_overflow above max_block_bytes, invalid_alignment for an alignment that is not a
/// power of two up to max_alignment.
[[nodiscard]] constexpr class_index class_of(std::size_t bytes, std::size_t alignment) {
  if (!is_power_of_two(alignment) || alignment > max_alignment) {
    throw invalid_alignment{alignment, max_alignment};
  }
  if (alignment <= default_alignment || bytes > max_block_bytes) {
    return class_of(bytes);  // which refuses what is too large by the number that was asked for
  }
  return class_of(align_up(bytes == 0 ? 1 : bytes, alignment));
}

}  // namespace pagesift
