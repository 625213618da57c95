// A pool on the fake's device 0 with two streams, for tests of the pool as CUDA shows it.
#pragma once

#include "fake_cuda.hpp"

#include <pagesift/core/bytes.hpp>
#include <pagesift/pool/cuda_pool.hpp>

#include <doctest/doctest.h>

#include <cstddef>

using pagesift::mebibyte;

inline cudaStream_t new_stream(unsigned flags = cudaStreamNonBlocking) {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, flags) == cudaSuccess);
  return stream;
}

/// Work that does not end before something waits for it.
inline void submit_work(cudaStream_t stream) {
  REQUIRE(cudaMemsetAsync(nullptr, 0, 0, stream) == cudaSuccess);
}

/// Starts a machine whose devices have `device_bytes`, then makes the pool.
struct pool_scene {
  explicit pool_scene(std::size_t device_bytes = pagesift::gibibyte,
                      const pagesift::pool_options& options = {})
      : pool{(fake_cuda::reset(2, device_bytes), options)},
        first{new_stream()},
        second{new_stream()} {}

  pagesift::cuda_pool pool;
  cudaStream_t first;
  cudaStream_t second;
};

/// Every free is sealed as soon as a second stream has been seen.
inline pagesift::pool_options eager_seals() {
  pagesift::pool_options options;
  options.seal_bytes = 1;
  return options;
}
