// CUB's environments and cuda::buffer, where CCCL has them. They ask the resource alone for memory.
#include "resource_scene.hpp"

#if CCCL_VERSION >= 3001000
#include <cub/device/device_reduce.cuh>
#include <cuda/std/execution>
#endif
#if CCCL_VERSION >= 3002000
#include <cuda/buffer>
#endif

#include <vector>

namespace {

#if CCCL_VERSION >= 3001000

namespace execution = cuda::std::execution;

struct sum_scene : resource_scene {
  /// Adds up through `environment`. Returns how many bytes the pool has handed out for that.
  template <typename Environment>
  std::size_t bytes_for(const Environment& environment) {
    pool.reset_peaks();
    CHECK(cub::DeviceReduce::Sum(in.data(), &out, 100'000, environment) == cudaSuccess);
    return pool.stats().peak_in_use;
  }

  std::vector<int> in = std::vector<int>(100'000, 1);
  int out = 0;
};

TEST_CASE("an environment that is the resource itself has CUB allocate from the pool") {
  sum_scene scene;
  CHECK(scene.bytes_for(scene.resource) != 0);
}

TEST_CASE("an environment of the resource and a stream has CUB allocate from the pool, on it") {
  sum_scene scene;
  const execution::env environment{scene.resource, cuda::stream_ref{scene.first}};
  CHECK(scene.bytes_for(environment) != 0);
  CHECK(fake_cuda::pending(scene.first));
}

TEST_CASE("an environment that names the resource as a property has CUB allocate from the pool") {
  sum_scene scene;
  const execution::prop named{cuda::mr::get_memory_resource_t{}, scene.resource};
  const execution::env environment{named, cuda::stream_ref{scene.first}};
  CHECK(scene.bytes_for(environment) != 0);
  CHECK(fake_cuda::pending(scene.first));
}

#endif

#if CCCL_VERSION >= 3002000

TEST_CASE("a buffer takes its memory from the pool and gives it back in its stream's order") {
  resource_scene scene;
  const cuda::stream_ref stream{scene.first};
  void* first = nullptr;
  {
    const auto buffer =
        cuda::make_buffer<char>(stream, scene.resource, 40 * mebibyte, cuda::no_init);
    first = const_cast<char*>(buffer.data());
    CHECK(scene.in_use() == 40 * mebibyte);
  }
  CHECK(scene.pool.allocate(40 * mebibyte, scene.first) == first);
  scene.pool.deallocate(first, 40 * mebibyte, scene.first);
}

TEST_CASE("a buffer of a shared resource keeps the pool") {
  fake_cuda::reset();
  const cuda::stream_ref stream{new_stream()};
  {
    const auto buffer =
        cuda::make_buffer<char>(stream, shared_resource{}, 40 * mebibyte, cuda::no_init);
    CHECK(buffer.data() != nullptr);
    CHECK(fake_cuda::live_pieces() != 0);
  }
  CHECK(fake_cuda::live_pieces() == 0);
  CHECK_FALSE(came_from_elsewhere());
}

#endif

}  // namespace
