// A pool on the fake's device 0 with two streams and a resource, and where its memory came from.
#pragma once

#include "pool_scene.hpp"

#include <pagesift/adapters/memory_resource.hpp>

#include <algorithm>
#include <array>

using pagesift::cuda_pool;
using pagesift::host_pool;
using pagesift::kibibyte;

using device_resource = pagesift::memory_resource<cuda_pool>;
using host_resource = pagesift::memory_resource<host_pool>;
using shared_resource = pagesift::shared_memory_resource<cuda_pool>;

/// Whether CUDA was asked for memory past the pools.
inline bool came_from_elsewhere() {
  constexpr std::array calls{"cudaMalloc", "cudaMallocAsync", "cudaMallocFromPoolAsync",
                             "cuMemAllocAsync", "cuMemAllocFromPoolAsync"};
  return std::any_of(calls.begin(), calls.end(),
                     [](const char* call) { return fake_cuda::count(call) != 0; });
}

struct resource_scene : pool_scene {
  resource_scene() = default;
  ~resource_scene() {
    CHECK_FALSE(came_from_elsewhere());
    CHECK(pool.stats().in_use == 0);
    CHECK(pool.stats().rejected_frees == 0);
  }
  resource_scene(const resource_scene&) = delete;
  resource_scene& operator=(const resource_scene&) = delete;

  [[nodiscard]] std::size_t in_use() const { return pool.stats().in_use; }

  device_resource resource{pool};
};
