// What the environment says about pools whose options leave it open.
#pragma once

#include <pagesift/back/page_run.hpp>
#include <pagesift/core/bytes.hpp>
#include <pagesift/core/error.hpp>
#include <pagesift/pool/options.hpp>

#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

namespace pagesift {

/// A value of an environment variable, by the name that stands for it.
template <typename Value>
struct named_value {
  const char* name;
  Value value;
};

/// What the environment variable is set to; null where it is not set, or empty.
[[nodiscard]] inline const char* environment_text(const char* variable) noexcept {
  const char* const text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? nullptr : text;
}

/// \throws invalid_argument
[[noreturn]] inline void refuse_environment(const char* variable, const std::string& wanted,
                                            const char* text) {
  throw invalid_argument{std::string{"the environment variable "} + variable + " must be " +
                         wanted + ", got " + text};
}

/// The value that the environment variable `variable` names; `otherwise` where it is not set, or
/// empty. \throws invalid_argument for a name that is not among `names`, which it lists
template <typename Value, std::size_t Count>
[[nodiscard]] Value from_environment(const char* variable, const named_value<Value> (&names)[Count],
                                     Value otherwise) {
  const char* const text = environment_text(variable);
  if (text == nullptr) {
    return otherwise;
  }
  std::string known;
  for (const named_value<Value>& each : names) {
    if (std::strcmp(text, each.name) == 0) {
      return each.value;
    }
    known += known.empty() ? "" : ", ";
    known += each.name;
  }
  refuse_environment(variable, "one of " + known, text);
}

/// Bytes as text: a whole number, in bytes or followed by KiB, MiB, GiB or TiB. Returns whether it
/// is one that fits `std::size_t`.
[[nodiscard]] inline bool read_bytes(const char* text, std::size_t& bytes) noexcept {
  constexpr named_value<std::size_t> units[] = {{"", 1},
                                                {"KiB", kibibyte},
                                                {"MiB", mebibyte},
                                                {"GiB", gibibyte},
                                                {"TiB", kibibyte * gibibyte}};
  if (std::isdigit(static_cast<unsigned char>(*text)) == 0) {  // strtoull takes signs and blanks
    return false;
  }
  char* end = nullptr;
  errno = 0;
  const unsigned long long count = std::strtoull(text, &end, 10);
  for (const named_value<std::size_t>& unit : units) {
    if (std::strcmp(end, unit.name) == 0) {
      bytes = static_cast<std::size_t>(count) * unit.value;
      return errno == 0 && count <= no_limit / unit.value;
    }
  }
  return false;
}

/// The bytes that the environment variable names, `least` or more; `otherwise` where it is not set,
/// or empty. \throws invalid_argument for anything else
[[nodiscard]] inline std::size_t bytes_from_environment(const char* variable, std::size_t least,
                                                        std::size_t otherwise) {
  const char* const text = environment_text(variable);
  if (text == nullptr) {
    return otherwise;
  }
  std::size_t bytes = 0;
  if (!read_bytes(text, bytes) || bytes < least) {
    refuse_environment(
        variable,
        "a number of bytes such as 8589934592, 8192MiB or 8GiB, at least " + std::to_string(least),
        text);
  }
  return bytes;
}

/// The options with everything that they leave to the environment decided.
/// \throws invalid_argument for a value that does not exist
[[nodiscard]] inline pool_options with_environment(pool_options options) {
  if (options.checks == checks::automatic) {
    constexpr named_value<checks> names[] = {
        {"standard", checks::standard}, {"trusted", checks::trusted}, {"full", checks::full}};
    options.checks = from_environment("PAGESIFT_CHECKS", names, checks::standard);
  }
  return options;
}

/// The options of the default pools, which no caller gives: `pool_options` with `limit_bytes`,
/// `initial_bytes`, `backing` and `announce` from PAGESIFT_LIMIT, PAGESIFT_INITIAL,
/// PAGESIFT_BACKING and PAGESIFT_ANNOUNCE. \throws invalid_argument for a value that makes no sense
[[nodiscard]] inline pool_options default_pool_options() {
  constexpr named_value<backing> backings[] = {{"automatic", backing::automatic},
                                               {"virtual_memory", backing::virtual_memory},
                                               {"plain", backing::plain}};
  constexpr named_value<bool> switches[] = {{"0", false}, {"1", true}};
  pool_options options;
  options.limit_bytes = bytes_from_environment("PAGESIFT_LIMIT", page_bytes, options.limit_bytes);
  options.initial_bytes = bytes_from_environment("PAGESIFT_INITIAL", 0, options.initial_bytes);
  options.backing = from_environment("PAGESIFT_BACKING", backings, options.backing);
  options.announce = from_environment("PAGESIFT_ANNOUNCE", switches, options.announce);
  return options;
}

}  // namespace pagesift
