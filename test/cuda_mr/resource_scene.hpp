// A pool on the fake's device 0 with a stream, and where its memory came from.
#pragma once

#include "fake_cuda.hpp"

#include <pagesift/adapters/memory_resource.hpp>
#include <pagesift/core/bytes.hpp>

#include <doctest/doctest.h>

#include <cstddef>

using pagesift::cuda_pool;
using pagesift::host_pool;
using pagesift::kibibyte;
using pagesift::mebibyte;

using device_resource = pagesift::memory_resource<cuda_pool>;
using host_resource = pagesift::memory_resource<host_pool>;
using shared_resource = pagesift::shared_memory_resource<cuda_pool>;

inline cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  return stream;
}

/// Whether CUDA was asked for memory past the pools.
inline bool came_from_elsewhere() {
  return fake_cuda::count("cudaMalloc") + fake_cuda::count("cudaMallocAsync") +
             fake_cuda::count("cudaMallocFromPoolAsync") + fake_cuda::count("cuMemAllocAsync") +
             fake_cuda::count("cuMemAllocFromPoolAsync") !=
         0;
}

struct resource_scene {
  resource_scene() : pool{(fake_cuda::reset(), pagesift::pool_options{})} {}
  ~resource_scene() {
    CHECK_FALSE(came_from_elsewhere());
    CHECK(pool.stats().in_use == 0);
    CHECK(pool.stats().rejected_frees == 0);
  }
  resource_scene(const resource_scene&) = delete;
  resource_scene& operator=(const resource_scene&) = delete;

  [[nodiscard]] std::size_t in_use() const { return pool.stats().in_use; }

  cuda_pool pool;
  cudaStream_t stream = new_stream();
  device_resource resource{pool};
};
