// Pools beside stream captures.
#include "pool_scene.hpp"

#include <thread>

namespace {

cudaError_t end_capture(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  return cudaStreamEndCapture(stream, &graph);
}

void begin_capture(cudaStream_t stream) {
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
}

}  // namespace

TEST_CASE("a request on a capturing stream is refused before anything is touched") {
  pool_scene scene;
  begin_capture(scene.first);
  fake_cuda::clear_log();
  CHECK_THROWS_AS((void)scene.pool.allocate(mebibyte, scene.first), pagesift::capture_error);
  for (const auto& call : fake_cuda::log()) {
    CHECK(call.name == "cuStreamIsCapturing");
  }
  CHECK(scene.pool.stats().held == 0);
  CHECK(end_capture(scene.first) == cudaSuccess);
  void* const p = scene.pool.allocate(mebibyte, scene.first);
  scene.pool.deallocate(p, mebibyte, scene.first);
}

TEST_CASE("a free on a capturing stream leaves the capture valid, and its block waits") {
  pool_scene scene{pagesift::gibibyte, eager_seals()};
  void* const p = scene.pool.allocate(mebibyte, scene.first);
  begin_capture(scene.first);
  scene.pool.deallocate(p, mebibyte, scene.first);
  void* const q = scene.pool.allocate(mebibyte, scene.second);
  CHECK(q != p);
  CHECK(end_capture(scene.first) == cudaSuccess);
  scene.pool.deallocate(q, mebibyte, scene.second);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("frees and misses in another thread leave a capture valid") {
  pool_scene scene{pagesift::gibibyte, eager_seals()};
  const cudaStream_t captured = new_stream();
  begin_capture(captured);
  std::thread{[&] {
    void* const p = scene.pool.allocate(4 * mebibyte, scene.first);
    void* const q = scene.pool.allocate(4 * mebibyte, scene.second);
    scene.pool.deallocate(p, 4 * mebibyte, scene.first);
    void* const r = scene.pool.allocate(4 * mebibyte, scene.second);
    scene.pool.deallocate(q, 4 * mebibyte, scene.second);
    scene.pool.deallocate(r, 4 * mebibyte, scene.second);
  }}.join();
  CHECK(end_capture(captured) == cudaSuccess);
}

TEST_CASE("a shortage while a capture is known is reported as one and leaves the capture valid") {
  pool_scene scene{64 * mebibyte};
  const cudaStream_t third = new_stream();
  void* const idle = scene.pool.allocate(8 * mebibyte, third);
  submit_work(third);
  scene.pool.deallocate(idle, 8 * mebibyte, third);  // no event covers it: only a fence would help
  void* const p = scene.pool.allocate(40 * mebibyte, scene.second);
  begin_capture(scene.first);
  CHECK_THROWS_AS((void)scene.pool.allocate(1, scene.first), pagesift::capture_error);
  CHECK_THROWS_AS((void)scene.pool.allocate(40 * mebibyte, scene.second), pagesift::out_of_memory);
  CHECK(end_capture(scene.first) == cudaSuccess);
  scene.pool.deallocate(p, 40 * mebibyte, scene.second);
}

TEST_CASE("a trim while a capture is known leaves the capture valid") {
  pool_scene scene;
  void* const p = scene.pool.allocate(mebibyte, scene.second);
  begin_capture(scene.first);
  CHECK_THROWS_AS((void)scene.pool.allocate(1, scene.first), pagesift::capture_error);
  scene.pool.deallocate(p, mebibyte, scene.second);
  scene.pool.trim();
  CHECK(end_capture(scene.first) == cudaSuccess);
}
