// Byte arithmetic that refuses what would wrap.
#pragma once

#include <pagesift/core/error.hpp>

#include <cstddef>
#include <limits>
#include <string>

namespace pagesift {

inline constexpr std::size_t kibibyte = std::size_t{1} << 10;
inline constexpr std::size_t mebibyte = std::size_t{1} << 20;
inline constexpr std::size_t gibibyte = std::size_t{1} << 30;

/// Whether `value` is a power of two; 0 is not.
[[nodiscard]] constexpr bool is_power_of_two(std::size_t value) noexcept {
  return value != 0 && (value & (value - 1)) == 0;
}

/// Position of the highest set bit of `value`. Precondition: `value != 0`.
[[nodiscard]] constexpr unsigned floor_log2(std::size_t value) noexcept {
#if defined(__GNUC__)
  return std::numeric_limits<unsigned long long>::digits - 1 -
         static_cast<unsigned>(__builtin_clzll(value));
#else
  unsigned log = 0;
  for (unsigned half = std::numeric_limits<std::size_t>::digits / 2; half != 0; half /= 2) {
    if ((value >> half) != 0) {
      value >>= half;
      log += half;
    }
  }
  return log;
#endif
}

/// `dividend / divisor`, rounded up. Precondition: `divisor != 0`. Never wraps.
[[nodiscard]] constexpr std::size_t divide_round_up(std::size_t dividend,
                                                    std::size_t divisor) noexcept {
  return dividend / divisor + (dividend % divisor != 0 ? 1 : 0);
}

/// Smallest multiple of `alignment` (a power of two) that is at least `bytes`.
/// \throws size_overflow where that multiple does not fit `std::size_t`.
[[nodiscard]] constexpr std::size_t align_up(std::size_t bytes, std::size_t alignment) {
  if (bytes > std::numeric_limits<std::size_t>::max() - (alignment - 1)) {
    throw size_overflow{bytes, 1};
  }
  return (bytes + alignment - 1) & ~(alignment - 1);
}

/// `count * element_bytes`, the bytes of an array.
/// \throws size_overflow where the product does not fit `std::size_t`.
[[nodiscard]] constexpr std::size_t array_bytes(std::size_t count, std::size_t element_bytes) {
  if (element_bytes != 0 && count > std::numeric_limits<std::size_t>::max() / element_bytes) {
    throw size_overflow{count, element_bytes};
  }
  return count * element_bytes;
}

/// A signed element count as an unsigned one.
/// \throws invalid_argument where `count` is negative.
[[nodiscard]] inline std::size_t checked_count(std::ptrdiff_t count) {
  if (count < 0) {
    throw invalid_argument{"a count of elements cannot be negative, got " + std::to_string(count)};
  }
  return static_cast<std::size_t>(count);
}

}  // namespace pagesift
