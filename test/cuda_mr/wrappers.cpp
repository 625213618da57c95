// The resources behind cuda::mr's own wrappers, which forget their type.
#include "resource_scene.hpp"

#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

namespace {

// What the wrappers and their calls are named in this CCCL.
#if CCCL_VERSION >= 3001000
using stream_ordered_ref = cuda::mr::resource_ref<cuda::mr::device_accessible>;
template <typename Property>
using synchronous_ref = cuda::mr::synchronous_resource_ref<Property>;

void* take(stream_ordered_ref ref, cuda::stream_ref stream, std::size_t bytes) {
  return ref.allocate(stream, bytes, 256);
}
void give(stream_ordered_ref ref, cuda::stream_ref stream, void* p, std::size_t bytes) {
  ref.deallocate(stream, p, bytes, 256);
}
template <typename Property>
void* take(synchronous_ref<Property> ref, std::size_t bytes) {
  return ref.allocate_sync(bytes, 256);
}
template <typename Property>
void give(synchronous_ref<Property> ref, void* p, std::size_t bytes) {
  ref.deallocate_sync(p, bytes, 256);
}
#else
using stream_ordered_ref = cuda::mr::async_resource_ref<cuda::mr::device_accessible>;
template <typename Property>
using synchronous_ref = cuda::mr::resource_ref<Property>;

void* take(stream_ordered_ref ref, cuda::stream_ref stream, std::size_t bytes) {
  return ref.allocate_async(bytes, 256, stream);
}
void give(stream_ordered_ref ref, cuda::stream_ref stream, void* p, std::size_t bytes) {
  ref.deallocate_async(p, bytes, 256, stream);
}
template <typename Property>
void* take(synchronous_ref<Property> ref, std::size_t bytes) {
  return ref.allocate(bytes, 256);
}
template <typename Property>
void give(synchronous_ref<Property> ref, void* p, std::size_t bytes) {
  ref.deallocate(p, bytes, 256);
}
#endif

TEST_CASE("a stream-ordered reference takes all its memory from the pool, in the stream's order") {
  resource_scene scene;
  const cuda::stream_ref stream{scene.first};
  const stream_ordered_ref ref{scene.resource};
  void* const p = take(ref, stream, 40 * mebibyte);
  CHECK(scene.in_use() == 40 * mebibyte);
  give(ref, stream, p, 40 * mebibyte);
  CHECK(scene.pool.allocate(40 * mebibyte, scene.first) == p);
  scene.pool.deallocate(p, 40 * mebibyte, scene.first);
}

TEST_CASE("a synchronous reference takes all its memory from the pool, host memory too") {
  resource_scene scene;
  const synchronous_ref<cuda::mr::device_accessible> ref{scene.resource};
  void* const p = take(ref, kibibyte);
  CHECK(scene.in_use() == kibibyte);
  give(ref, p, kibibyte);

  host_pool host;
  host_resource of_host{host};
  const synchronous_ref<cuda::mr::host_accessible> host_ref{of_host};
  void* const q = take(host_ref, kibibyte);
  std::memset(q, 1, kibibyte);
  CHECK(host.stats().in_use == kibibyte);
  give(host_ref, q, kibibyte);
  CHECK(host.stats().in_use == 0);
}

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
