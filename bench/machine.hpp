// The machine under the benchmarks: its memory, its streams, waiting. The GPU where the translation
// unit is compiled for CUDA, the host elsewhere.
#pragma once

#include <pagesift/adapters/system.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>

#ifdef PAGESIFT_DEVICE_IS_CUDA
#include <cuda_runtime.h>
#endif

namespace bench {

using stream = pagesift::stream;

#ifdef PAGESIFT_DEVICE_IS_CUDA

/// Calls of cudaMalloc so far, in our own code, Thrust and CUB (see cuda_malloc_count.cpp).
extern "C" std::uint64_t bench_cuda_malloc_count() noexcept;
[[nodiscard]] inline std::optional<std::uint64_t> device_allocation_calls() noexcept {
  return bench_cuda_malloc_count();
}

/// Device memory, or std::bad_alloc. A shortage leaves no error behind in the CUDA runtime.
[[nodiscard]] inline void* acquire(std::size_t bytes) {
  void* p = nullptr;
  if (cudaMalloc(&p, bytes) != cudaSuccess) {
    (void)cudaGetLastError();
    throw std::bad_alloc{};
  }
  return p;
}
inline void release(void* p) noexcept { (void)cudaFree(p); }
inline void synchronize() noexcept { (void)cudaDeviceSynchronize(); }

/// Bytes of the device that nobody holds now.
[[nodiscard]] inline std::size_t free_machine_bytes() {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) {
    (void)cudaGetLastError();
    throw std::runtime_error{"cudaMemGetInfo failed"};
  }
  return free_bytes;
}

/// A stream of its own, which does not wait for the default stream.
class own_stream {
 public:
  own_stream() {
    if (cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) != cudaSuccess) {
      throw std::bad_alloc{};
    }
  }
  own_stream(const own_stream&) = delete;
  own_stream& operator=(const own_stream&) = delete;
  ~own_stream() { (void)cudaStreamDestroy(stream_); }

  [[nodiscard]] stream get() const noexcept { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

#else

/// Nobody counts the host's allocations from outside.
[[nodiscard]] inline std::optional<std::uint64_t> device_allocation_calls() noexcept { return {}; }

[[nodiscard]] inline void* acquire(std::size_t bytes) {
  void* const p = std::malloc(bytes);
  if (p == nullptr) {
    throw std::bad_alloc{};
  }
  return p;
}
inline void release(void* p) noexcept { std::free(p); }
inline void synchronize() noexcept {}

/// The host has one stream only.
class own_stream {
 public:
  [[nodiscard]] stream get() const noexcept { return {}; }
};

#endif

struct release_memory {
  void operator()(void* p) const noexcept { release(p); }
};
/// Memory of the machine that no allocator under test knows of.
using machine_memory = std::unique_ptr<void, release_memory>;

}  // namespace bench
