// Compiled for per-thread default streams and linked to code that is not.
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include "fake_cuda.hpp"

#include <pagesift/backend/cuda.hpp>

#include <doctest/doctest.h>

#include <thread>

using pagesift::cuda_backend;

TEST_CASE("with per-thread default streams null is another stream in each thread") {
  fake_cuda::reset();
  const auto backend = cuda_backend::open(0);
  const auto here = backend.inspect(nullptr);
  CHECK(here.id == backend.inspect(cudaStreamPerThread).id);
  CHECK(here.id != pagesift::legacy_stream_id);
  CHECK(backend.inspect(cudaStreamLegacy).id == pagesift::legacy_stream_id);
  std::thread{[&] {
    CHECK(backend.inspect(nullptr).result.ok());
    CHECK(backend.inspect(nullptr).id != here.id);
  }}.join();
}

TEST_CASE("with per-thread default streams an event on null covers the calling thread's stream") {
  fake_cuda::reset();
  const auto backend = cuda_backend::open(0);
  cudaEvent_t event = nullptr;
  REQUIRE(backend.create_event(event).ok());
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  REQUIRE(backend.record(event, nullptr).ok());
  CHECK(fake_cuda::pending(cudaStreamPerThread));
  CHECK_FALSE(fake_cuda::pending(cudaStreamLegacy));
}

TEST_CASE("a per-thread default stream can be capturing") {
  fake_cuda::reset();
  const auto backend = cuda_backend::open(0);
  REQUIRE(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK(backend.inspect(nullptr).capturing);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(nullptr, &graph) == cudaSuccess);
}
