// Room in a vector ahead of need.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace pagesift {

/// Makes room for `count` elements, at least doubling where there is not enough: later insertions
/// up to that many allocate nothing. \throws std::bad_alloc
template <typename T>
void reserve_amortised(std::vector<T>& v, std::size_t count) {
  if (v.capacity() < count) {
    v.reserve(std::max(count, 2 * v.capacity()));
  }
}

}  // namespace pagesift
