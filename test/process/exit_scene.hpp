// What the programs share that end while their static objects still have memory.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <utility>

#if defined(PAGESIFT_TEST_ON_FAKE_CUDA)
#include "fake_cuda.hpp"

#include <pagesift/pool/cuda_pool.hpp>
using pool_type = pagesift::cuda_pool;
#else
#include <pagesift/pool/host_pool.hpp>
using pool_type = pagesift::host_pool;
#endif

using stream_type = pool_type::stream_type;

/// Memory that is given back where this is destroyed, as that of a vector.
class owner {
 public:
  owner() noexcept = default;
  owner(pool_type& pool, std::size_t bytes)
      : pool_{&pool}, bytes_{bytes}, memory_{pool.allocate(bytes, stream_type{})} {}
  owner(owner&& other) noexcept { swap(other); }
  owner& operator=(owner&& other) noexcept {
    swap(other);
    return *this;
  }
  ~owner() {
    if (pool_ != nullptr) {
      pool_->deallocate(memory_, bytes_, stream_type{});
    }
  }

 private:
  void swap(owner& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(bytes_, other.bytes_);
    std::swap(memory_, other.memory_);
  }

  pool_type* pool_ = nullptr;
  std::size_t bytes_ = 0;
  void* memory_ = nullptr;
};

/// Calls of CUDA so far; on the host there are none.
inline std::size_t cuda_calls() {
#if defined(PAGESIFT_TEST_ON_FAKE_CUDA)
  return fake_cuda::log().size();
#else
  return 0;
#endif
}

/// Ends the program with an error where CUDA was called after the exit began. The first static
/// object of a program, so the last one to be destroyed.
class exit_judge {
 public:
  /// To be called at the end of main: the handler is the first to run.
  void expect_silence() {
    judge() = this;
    (void)std::atexit([] { judge()->calls_ = cuda_calls(); });
  }
  ~exit_judge() {
    if (judge() == this && calls_ != cuda_calls()) {
      std::fprintf(stderr, "%zu calls of CUDA during the exit\n", cuda_calls() - calls_);
      std::_Exit(1);
    }
  }

 private:
  static exit_judge*& judge() noexcept {
    static exit_judge* one = nullptr;
    return one;
  }

  std::size_t calls_ = 0;
};
