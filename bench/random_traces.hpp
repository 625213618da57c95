// The traces of the workloads random and random_cold.
#pragma once

#include "trace.hpp"

#include <pagesift/core/bytes.hpp>

#include <cstddef>

namespace bench {

#ifdef PAGESIFT_DEVICE_IS_CUDA
inline constexpr std::size_t random_live_cap_bytes = 16'000'000'000;
#else
// Addresses: nothing writes to the blocks.
inline constexpr std::size_t random_live_cap_bytes = 4'000'000'000;
#endif

struct random_argument {
  const char* name;
  trace_shape shape;
};

// Long enough to reach the cap, but for the smallest sizes; short enough for cudaMalloc.
inline constexpr random_argument random_arguments[] = {
    {"1MiB", {pagesift::mebibyte, random_live_cap_bytes, 20'000}},
    {"64MiB", {64 * pagesift::mebibyte, random_live_cap_bytes, 5'000}},
    {"1GiB", {pagesift::gibibyte, random_live_cap_bytes, 2'000}},
};

}  // namespace bench
