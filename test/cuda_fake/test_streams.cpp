// Streams are known by id.
#include "fake_cuda.hpp"

#include <pagesift/backend/cuda.hpp>

#include <doctest/doctest.h>

#include <thread>

using pagesift::cuda_backend;
using pagesift::stream_id;

namespace {

stream_id id_of(const cuda_backend& backend, cudaStream_t stream) {
  const pagesift::stream_state state = backend.inspect(stream);
  REQUIRE(state.result.ok());
  REQUIRE_FALSE(state.capturing);
  return state.id;
}

}  // namespace

TEST_CASE("null and the legacy handle are one stream, known once there was no reset") {
  fake_cuda::reset();
  const auto backend = cuda_backend::open(0);
  fake_cuda::clear_log();
  CHECK(id_of(backend, nullptr) == pagesift::legacy_stream_id);
  CHECK(id_of(backend, cudaStreamLegacy) == pagesift::legacy_stream_id);
  CHECK(fake_cuda::log().size() == fake_cuda::count("cuCtxGetId"));
}

TEST_CASE("the per-thread default stream is another stream in each thread") {
  fake_cuda::reset();
  const auto backend = cuda_backend::open(0);
  const stream_id here = id_of(backend, cudaStreamPerThread);
  CHECK(here == id_of(backend, cudaStreamPerThread));
  CHECK(here != pagesift::legacy_stream_id);
  std::thread{[&] { CHECK(id_of(backend, cudaStreamPerThread) != here); }}.join();
}

TEST_CASE("a stream in a destroyed one's place has another id, and the old one is not touched") {
  fake_cuda::reset();
  const auto backend = cuda_backend::open(0);
  cudaStream_t first = nullptr;
  cudaStream_t second = nullptr;
  REQUIRE(cudaStreamCreate(&first) == cudaSuccess);
  const stream_id first_id = id_of(backend, first);
  REQUIRE(cudaStreamDestroy(first) == cudaSuccess);
  REQUIRE(cudaStreamCreate(&second) == cudaSuccess);
  REQUIRE(first == second);
  CHECK(id_of(backend, second) != first_id);
  CHECK(fake_cuda::misuse().empty());
}

TEST_CASE("a created stream is asked twice, its context once, and no context is changed") {
  fake_cuda::reset();
  const auto backend = cuda_backend::open(0);
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  fake_cuda::clear_log();
  (void)id_of(backend, stream);
  const auto log = fake_cuda::log();
  REQUIRE(log.size() == 3);
  CHECK(log[0].name == "cuCtxGetId");
  CHECK(log[1].name == "cuStreamIsCapturing");
  CHECK(log[2].name == "cuStreamGetId");
}
