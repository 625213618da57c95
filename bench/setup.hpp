// What a workload asks of an allocator before it is made.
#pragma once

#include <pagesift/pool/options.hpp>

#include <cstddef>
#include <optional>
#include <type_traits>

namespace bench {

/// Sizes are bytes. An allocator that can do neither is made as always.
struct setup {
  /// Reserved when the allocator is made; without it, what its documentation tells its users to.
  std::optional<std::size_t> initial_bytes;
  std::size_t limit_bytes = pagesift::no_limit;  ///< never hold more than this
};

/// Whether all that an allocator will ever have is reserved when it is made.
template <typename Allocator>
inline constexpr bool never_grows = false;

template <typename Allocator>
[[nodiscard]] Allocator make_allocator(const setup& wanted) {
  if constexpr (std::is_constructible_v<Allocator, const setup&>) {
    return Allocator{wanted};
  } else {
    return Allocator();  // without braces: some would be aggregates
  }
}

}  // namespace bench
