// What one call into a backend came to.
#pragma once

namespace pagesift {

/// How a backend call ended. `shortage` is only ever "no memory left"; every other failure is
/// `failed`, so that a broken device is never mistaken for a full one.
enum class outcome : unsigned char { ok, shortage, not_ready, failed };

/// Result of a backend call. Backends do not throw: most calls come from `noexcept` code.
struct [[nodiscard]] status {
  outcome result = outcome::ok;
  int code = 0;           ///< the backend's own error code, e.g. a `cudaError_t`
  const char* call = "";  ///< the call that ended so; static storage

  [[nodiscard]] constexpr bool ok() const noexcept { return result == outcome::ok; }
  [[nodiscard]] constexpr bool shortage() const noexcept { return result == outcome::shortage; }
  [[nodiscard]] constexpr bool not_ready() const noexcept { return result == outcome::not_ready; }
  [[nodiscard]] constexpr bool failed() const noexcept { return result == outcome::failed; }
};

}  // namespace pagesift
