// Which memory a backend takes: what pools compete for.
#pragma once

#include <pagesift/backend/backend.hpp>

#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

namespace pagesift {

/// Names memory that one backend or several take theirs from: a device's, the host's.
struct memory_place {
  const char* kind = "";  ///< static storage, compared by its characters
  std::uintptr_t which = 0;

  friend bool operator==(const memory_place& a, const memory_place& b) noexcept {
    return a.which == b.which && std::strcmp(a.kind, b.kind) == 0;
  }
  friend bool operator!=(const memory_place& a, const memory_place& b) noexcept {
    return !(a == b);
  }
};

template <typename B, typename = void>
struct has_place : std::false_type {};
template <typename B>
struct has_place<B, std::void_t<decltype(memory_place{std::declval<const B&>().place()})>>
    : std::true_type {};

/// Where the backend's memory is from, if it says so by a function `place()`. Pools of one that
/// does not neither ask others for memory nor are asked.
template <typename Backend>
[[nodiscard]] std::optional<memory_place> place_of(const Backend& backend) noexcept {
  if constexpr (has_place<Backend>::value) {
    return backend.place();
  }
  return std::nullopt;
}

}  // namespace pagesift
