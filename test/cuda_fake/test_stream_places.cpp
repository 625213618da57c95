// Which device a stream belongs to, and work on memory beside captures.
#include "fake_cuda.hpp"

#include <pagesift/backend/cuda.hpp>

#include <doctest/doctest.h>

namespace {

cudaStream_t stream_on(int device) {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaSetDevice(device) == cudaSuccess);
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  return stream;
}

}  // namespace

TEST_CASE("a stream of another device is known to be elsewhere, whichever device is current") {
  fake_cuda::reset();
  const auto backend = pagesift::cuda_backend::open(0);
  const cudaStream_t here = stream_on(0);
  const cudaStream_t there = stream_on(1);
  for (const int current : {0, 1}) {
    REQUIRE(cudaSetDevice(current) == cudaSuccess);
    CHECK_FALSE(backend.is_elsewhere(here));
    CHECK(backend.is_elsewhere(there));
    CHECK(pagesift::cuda_backend::current_device() == current);
  }
  CHECK(fake_cuda::context_depth() == 1);
}

TEST_CASE("default streams are always the backend's device's") {
  fake_cuda::reset();
  const auto backend = pagesift::cuda_backend::open(0);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  for (const cudaStream_t stream : {cudaStream_t{}, cudaStreamLegacy, cudaStreamPerThread}) {
    CHECK_FALSE(backend.is_elsewhere(stream));
  }
}

TEST_CASE("a fill on a capturing stream is refused and leaves the capture valid") {
  fake_cuda::reset();
  const auto backend = pagesift::cuda_backend::open(0);
  void* p = nullptr;
  REQUIRE(backend.acquire(1000, p).ok());
  const cudaStream_t stream = stream_on(0);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  fake_cuda::clear_log();
  CHECK(backend.fill(p, 1, 1000, stream).failed());
  CHECK(fake_cuda::count("cuMemsetD8Async") == 0);
  CHECK(backend.fill(p, 1, 1000, nullptr).failed());  // it would pull the stream along
  CHECK(fake_cuda::count("cuMemsetD8Async") == 0);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
}
