// A short piece of work on a stream: a kernel that spins, or on the host a loop that does.
#pragma once

#include "machine.hpp"

#include <chrono>
#include <cstdint>
#include <stdexcept>

namespace bench {

inline constexpr std::uint64_t short_work_ns = 10'000;

#ifdef PAGESIFT_DEVICE_IS_CUDA

/// In a namespace without a name of each translation unit, since a kernel's stub is not inline.
namespace {
__global__ void spin(std::uint64_t ns) {
  std::uint64_t start = 0;
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < ns);
}
}  // namespace

inline void check_cuda(cudaError_t error) {
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    throw std::runtime_error{cudaGetErrorString(error)};
  }
}

/// Submits one kernel of about `short_work_ns` to `s`.
inline void submit_short_work(stream s) {
  spin<<<1, 1, 0, s>>>(short_work_ns);
  check_cuda(cudaGetLastError());
}

inline void wait_for(stream s) { check_cuda(cudaStreamSynchronize(s)); }

#else

/// Works for about `short_work_ns` and returns when it is done.
inline void submit_short_work(stream) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds{short_work_ns};
  while (std::chrono::steady_clock::now() < end) {
  }
}

inline void wait_for(stream) {}

#endif

}  // namespace bench
