// What the environment says about pools whose options leave it open.
#pragma once

#include <pagesift/core/error.hpp>
#include <pagesift/pool/options.hpp>

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

/// The value that the environment variable `variable` names; `otherwise` where it is not set, or
/// empty. \throws invalid_argument for a name that is not among `names`, which it lists
template <typename Value, std::size_t Count>
[[nodiscard]] Value from_environment(const char* variable, const named_value<Value> (&names)[Count],
                                     Value otherwise) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') {
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
  throw invalid_argument{std::string{"the environment variable "} + variable + " must be one of " +
                         known + ", got " + text};
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

}  // namespace pagesift
