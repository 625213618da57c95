// The resources behind cuda::mr's own wrappers, which forget their type.
#include "resource_scene.hpp"

#include <cstring>
#include <optional>
#include <utility>

namespace {

#if CCCL_VERSION >= 3001000

TEST_CASE("a resource_ref takes all its memory from the pool, in the stream's order") {
  resource_scene scene;
  cuda::mr::resource_ref<cuda::mr::device_accessible> ref{scene.resource};
  void* const p = ref.allocate(cuda::stream_ref{scene.stream}, 40 * mebibyte, 256);
  CHECK(scene.in_use() == 40 * mebibyte);
  ref.deallocate(cuda::stream_ref{scene.stream}, p, 40 * mebibyte, 256);
  CHECK(scene.pool.allocate(40 * mebibyte, scene.stream) == p);
  scene.pool.deallocate(p, 40 * mebibyte, scene.stream);
}

TEST_CASE("a synchronous_resource_ref takes all its memory from the pool, host memory too") {
  resource_scene scene;
  cuda::mr::synchronous_resource_ref<cuda::mr::device_accessible> ref{scene.resource};
  void* const p = ref.allocate_sync(kibibyte, 256);
  CHECK(scene.in_use() == kibibyte);
  ref.deallocate_sync(p, kibibyte, 256);

  host_pool host;
  host_resource of_host{host};
  cuda::mr::synchronous_resource_ref<cuda::mr::host_accessible> host_ref{of_host};
  void* const q = host_ref.allocate_sync(kibibyte, 256);
  std::memset(q, 1, kibibyte);
  CHECK(host.stats().in_use == kibibyte);
  host_ref.deallocate_sync(q, kibibyte, 256);
  CHECK(host.stats().in_use == 0);
}

#else

TEST_CASE("an async_resource_ref takes all its memory from the pool, in the stream's order") {
  resource_scene scene;
  cuda::mr::async_resource_ref<cuda::mr::device_accessible> ref{scene.resource};
  void* const p = ref.allocate_async(40 * mebibyte, 256, cuda::stream_ref{scene.stream});
  CHECK(scene.in_use() == 40 * mebibyte);
  ref.deallocate_async(p, 40 * mebibyte, 256, cuda::stream_ref{scene.stream});
  CHECK(scene.pool.allocate(40 * mebibyte, scene.stream) == p);
  scene.pool.deallocate(p, 40 * mebibyte, scene.stream);
}

TEST_CASE("a resource_ref takes all its memory from the pool, host memory too") {
  resource_scene scene;
  cuda::mr::resource_ref<cuda::mr::device_accessible> ref{scene.resource};
  void* const p = ref.allocate(kibibyte, 256);
  CHECK(scene.in_use() == kibibyte);
  ref.deallocate(p, kibibyte, 256);

  host_pool host;
  host_resource of_host{host};
  cuda::mr::resource_ref<cuda::mr::host_accessible> host_ref{of_host};
  void* const q = host_ref.allocate(kibibyte, 256);
  std::memset(q, 1, kibibyte);
  CHECK(host.stats().in_use == kibibyte);
  host_ref.deallocate(q, kibibyte, 256);
  CHECK(host.stats().in_use == 0);
}

#endif

#if CCCL_VERSION >= 3002000

TEST_CASE("an any_resource of a shared resource keeps the pool for its memory") {
  fake_cuda::reset();
  const cudaStream_t stream = new_stream();
  std::optional<shared_resource> mine{std::in_place};
  cuda::mr::any_resource<cuda::mr::device_accessible> any{*mine};
  void* const p = any.allocate(cuda::stream_ref{stream}, kibibyte, 256);
  CHECK(mine->pool().stats().in_use == kibibyte);
  mine.reset();
  CHECK(fake_cuda::live_pieces() != 0);
  any.deallocate(cuda::stream_ref{stream}, p, kibibyte, 256);
  any.reset();
  CHECK(fake_cuda::live_pieces() == 0);
  CHECK_FALSE(came_from_elsewhere());
}

#endif

}  // namespace
