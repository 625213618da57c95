// thrust_resource on the CUDA backend: which work its memory waits for.
#include "fake_cuda.hpp"

#include <pagesift/adapters/thrust_resource.hpp>

#include <doctest/doctest.h>

namespace {

using pagesift::thrust_resource;

constexpr std::size_t large_bytes = 40 * pagesift::mebibyte;

/// A pool and a stream that has work on a block of it.
struct busy_stream {
  busy_stream() : pool{(fake_cuda::reset(), pagesift::pool_options{})} {
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  }

  thrust_resource::pointer use(thrust_resource& resource) const {
    const thrust_resource::pointer p = resource.allocate(large_bytes);
    REQUIRE(cudaMemsetAsync(p.get(), 0, 16, stream) == cudaSuccess);
    return p;
  }

  pagesift::device_pool pool;
  cudaStream_t stream = nullptr;
};

TEST_CASE("a resource that knows no stream gets memory back when no work uses it any more") {
  busy_stream s;
  thrust_resource resource{s.pool};
  resource.deallocate(s.use(resource), large_bytes);
  CHECK_FALSE(fake_cuda::pending(s.stream));
}

TEST_CASE("a resource that knows no stream hands out nothing that work still uses") {
  busy_stream s;
  thrust_resource in_order{s.pool, s.stream};
  thrust_resource resource{s.pool};
  const thrust_resource::pointer p = s.use(in_order);
  in_order.deallocate(p, large_bytes);
  REQUIRE(fake_cuda::pending(s.stream));
  const thrust_resource::pointer q = resource.allocate(large_bytes);
  CHECK((q != p || !fake_cuda::pending(s.stream)));
  resource.deallocate(q, large_bytes);
}

TEST_CASE("a resource in a stream's order serves that stream again while its work runs") {
  busy_stream s;
  thrust_resource in_order{s.pool, s.stream};
  const thrust_resource::pointer p = s.use(in_order);
  in_order.deallocate(p, large_bytes);
  CHECK(in_order.allocate(large_bytes) == p);
  CHECK(fake_cuda::pending(s.stream));
  in_order.deallocate(p, large_bytes);
}

}  // namespace
