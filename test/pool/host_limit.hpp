// A bound on what the calling thread may allocate on the host. host_limit.cpp replaces the global
// operator new of the program that it is linked into.
#pragma once

#include <cstdint>

/// How the calling thread's allocations go.
struct host_limit {
  bool set = false;
  bool suspended = false;
  std::uint64_t left = 0;  ///< so many succeed yet
  bool recovers = false;   ///< after one that failed
  bool refused = false;    ///< one has failed

  /// Whether the next allocation is to succeed.
  [[nodiscard]] bool grant() noexcept;
};

[[nodiscard]] host_limit& this_threads_host_limit() noexcept;
