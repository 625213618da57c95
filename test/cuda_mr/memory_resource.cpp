// What the resources do with a request, in every form that a version of cuda::mr has.
#include "resource_scene.hpp"

#include <pagesift/core/error.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

namespace {

TEST_CASE("a request with a stream is in that stream's order, by either name") {
  resource_scene scene;
  const device_resource& resource = scene.resource;
  void* const p = resource.allocate(cuda::stream_ref{scene.first}, 40 * mebibyte, 256);
  CHECK(scene.in_use() == 40 * mebibyte);
  submit_work(scene.first);
  resource.deallocate(cuda::stream_ref{scene.first}, p, 40 * mebibyte, 256);
  void* const elsewhere =
      resource.allocate_async(40 * mebibyte, 256, cuda::stream_ref{scene.second});
  CHECK(elsewhere != p);
  void* const again = resource.allocate_async(40 * mebibyte, 256, cuda::stream_ref{scene.first});
  CHECK(again == p);
  resource.deallocate_async(again, 40 * mebibyte, 256, cuda::stream_ref{scene.first});
  resource.deallocate_async(elsewhere, 40 * mebibyte, 256, cuda::stream_ref{scene.second});
}

TEST_CASE("a request without a stream gets memory that no work uses, and its free waits for work") {
  resource_scene scene;
  const device_resource& resource = scene.resource;
  void* const p = resource.allocate_sync(kibibyte, 256);
  submit_work(scene.first);
  resource.deallocate_sync(p, kibibyte, 256);
  CHECK_FALSE(fake_cuda::pending(scene.first));
  void* const q = resource.allocate(kibibyte, 256);
  CHECK(scene.in_use() == kibibyte);
  resource.deallocate(q, kibibyte, 256);
}

TEST_CASE("a request without an alignment is aligned to 256 bytes, one with a larger to that") {
  resource_scene scene;
  const cuda::stream_ref stream{scene.first};
  for (const std::size_t alignment :
       {std::size_t{1}, std::size_t{16}, 4 * kibibyte, 2 * mebibyte}) {
    void* const before = scene.resource.allocate(stream, 100);
    void* const p = scene.resource.allocate(stream, 100, alignment);
    CHECK(reinterpret_cast<std::uintptr_t>(p) % alignment == 0);
    scene.resource.deallocate(stream, p, 100, alignment);
    scene.resource.deallocate(stream, before, 100);
  }
  void* const p = scene.resource.allocate(stream, 100);
  CHECK(reinterpret_cast<std::uintptr_t>(p) % 256 == 0);
  scene.resource.deallocate(stream, p, 100);
}

TEST_CASE("what a request throws is the pool's, and nothing is taken") {
  resource_scene scene;
  const cuda::stream_ref stream{scene.first};
  CHECK_THROWS_AS((void)scene.resource.allocate(stream, SIZE_MAX, 256), pagesift::size_overflow);
  CHECK_THROWS_AS((void)scene.resource.allocate(stream, 100, 3), pagesift::invalid_alignment);
  CHECK_THROWS_AS((void)scene.resource.allocate_sync(100, 4 * mebibyte),
                  pagesift::invalid_alignment);
  CHECK_THROWS_AS((void)scene.resource.allocate(stream, 4 * pagesift::gibibyte),
                  pagesift::out_of_memory);
  CHECK(scene.in_use() == 0);
}

TEST_CASE("resources of one pool are equal, those of two are not") {
  resource_scene scene;
  cuda_pool other;
  CHECK(scene.resource == device_resource{scene.pool.handle()});
  CHECK(scene.resource != device_resource{other});
  CHECK(device_resource{} == device_resource{});
  CHECK(device_resource{} != scene.resource);
  const shared_resource one;
  const shared_resource copy = one;
  CHECK(one == copy);
  CHECK(one != shared_resource{});
}

TEST_CASE("a resource made of nothing takes from the default pool of the current device") {
  fake_cuda::reset();
  const device_resource resource;
  cuda_pool& pool = cuda_pool::default_pool();
  const std::size_t before = pool.stats().in_use;
  void* const p = resource.allocate_sync(kibibyte, 256);
  CHECK(pool.stats().in_use == before + kibibyte);
  resource.deallocate_sync(p, kibibyte, 256);
  CHECK(pool.stats().in_use == before);
  pool.trim();
}

TEST_CASE("a shared resource's pool lives as long as a copy, and ends with the last") {
  fake_cuda::reset();
  std::weak_ptr<cuda_pool> watched;
  {
    auto pool = std::make_shared<cuda_pool>();
    watched = pool;
    shared_resource first{std::move(pool)};
    const shared_resource last = first;
    void* const p = first.allocate_sync(kibibyte, 256);
    first = shared_resource{};
    CHECK_FALSE(watched.expired());
    last.deallocate_sync(p, kibibyte, 256);
    CHECK(last.pool().stats().in_use == 0);
  }
  CHECK(watched.expired());
  CHECK(fake_cuda::live_pieces() == 0);
}

TEST_CASE("a shared resource of no pool is refused") {
  CHECK_THROWS_AS(shared_resource{std::shared_ptr<cuda_pool>{}}, pagesift::invalid_argument);
}

TEST_CASE("a pool of host memory is a resource that the host may write to") {
  host_pool pool;
  const host_resource resource{pool};
  void* const p = resource.allocate_sync(100, 256);
  std::memset(p, 1, 100);
  CHECK(pool.stats().in_use == 256);
  resource.deallocate_sync(p, 100, 256);
  CHECK(pool.stats().in_use == 0);
}

}  // namespace
