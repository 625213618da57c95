// What a workload asks of an allocator before it is made.
#pragma once

#include <pagesift/pool/options.hpp>

#include <cstddef>
#include <type_traits>

namespace bench {

/// Sizes are bytes. An allocator that can do neither is made as always.
struct setup {
  std::size_t initial_bytes = 0;                 ///< reserved when the allocator is made
  std::size_t limit_bytes = pagesift::no_limit;  ///< never hold more than this
};

template <typename Allocator>
[[nodiscard]] Allocator make_allocator(const setup& wanted) {
  if constexpr (std::is_constructible_v<Allocator, const setup&>) {
    return Allocator{wanted};
  } else {
    return Allocator();  // without braces: some would be aggregates
  }
}

}  // namespace bench
