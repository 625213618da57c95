// thrust_resource on the CUDA backend: which work its memory waits for.
#include "pool_scene.hpp"

#include <pagesift/adapters/thrust_resource.hpp>

namespace {

using pagesift::thrust_resource;

constexpr std::size_t large_bytes = 40 * mebibyte;

/// A block that work on the scene's first stream uses.
thrust_resource::pointer take_busy(const pool_scene& scene, thrust_resource& resource) {
  const thrust_resource::pointer p = resource.allocate(large_bytes);
  submit_work(scene.first);
  return p;
}

TEST_CASE("a resource that knows no stream gets memory back when no work uses it any more") {
  pool_scene s;
  thrust_resource resource{s.pool};
  resource.deallocate(take_busy(s, resource), large_bytes);
  CHECK_FALSE(fake_cuda::pending(s.first));
}

TEST_CASE("a resource that knows no stream hands out nothing that work still uses") {
  pool_scene s;
  thrust_resource in_order{s.pool, s.first};
  thrust_resource resource{s.pool};
  const thrust_resource::pointer p = take_busy(s, in_order);
  in_order.deallocate(p, large_bytes);
  REQUIRE(fake_cuda::pending(s.first));
  const thrust_resource::pointer q = resource.allocate(large_bytes);
  CHECK((q != p || !fake_cuda::pending(s.first)));
  resource.deallocate(q, large_bytes);
}

TEST_CASE("a resource in a stream's order serves that stream again while its work runs") {
  pool_scene s;
  thrust_resource in_order{s.pool, s.first};
  const thrust_resource::pointer p = take_busy(s, in_order);
  in_order.deallocate(p, large_bytes);
  CHECK(in_order.allocate(large_bytes) == p);
  CHECK(fake_cuda::pending(s.first));
  in_order.deallocate(p, large_bytes);
}

}  // namespace
