// Pools and stream captures as CUDA shows them.
#include "pool_scene.hpp"

#include <algorithm>
#include <thread>

namespace {

void begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  REQUIRE(cudaStreamBeginCapture(stream, mode) == cudaSuccess);
}

cudaGraph_t end_capture(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  return graph;
}

void check_valid_to_the_end(cudaStream_t stream) {
  REQUIRE(cudaGraphDestroy(end_capture(stream)) == cudaSuccess);
}

/// A block allocated, used and freed on `stream`; its address.
void* turn(pool_scene& scene, std::size_t bytes, cudaStream_t stream) {
  void* const p = scene.pool.allocate(bytes, stream);
  submit_work(stream);
  scene.pool.deallocate(p, bytes, stream);
  return p;
}

/// Later work of `to` comes after what was submitted to `from`.
void order(cudaStream_t from, cudaStream_t to) {
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, from) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(to, event, 0) == cudaSuccess);
  REQUIRE(cudaEventDestroy(event) == cudaSuccess);
}

}  // namespace

TEST_CASE("a request on a capturing stream makes no call that could end the capture") {
  for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                          cudaStreamCaptureModeRelaxed}) {
    pool_scene scene;
    begin_capture(scene.first, mode);
    fake_cuda::clear_log();
    void* const p = turn(scene, mebibyte, scene.first);
    CHECK(turn(scene, mebibyte, scene.first) == p);
    CHECK(fake_cuda::count("cuStreamGetId") == 0);
    CHECK(fake_cuda::count("cuUserObjectCreate") == 1);
    CHECK(scene.pool.stats().captured == mebibyte);
    CHECK(turn(scene, mebibyte, scene.second) != p);
    check_valid_to_the_end(scene.first);
    CHECK(scene.pool.stats().captured == 0);
  }
}

TEST_CASE("the memory of a graph comes back after its last launch") {
  pool_scene scene;
  begin_capture(scene.first);
  turn(scene, mebibyte, scene.first);
  cudaGraph_t const graph = end_capture(scene.first);
  cudaGraphExec_t replay = nullptr;
  REQUIRE(cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(replay, scene.second) == cudaSuccess);
  REQUIRE(cudaGraphExecDestroy(replay) == cudaSuccess);
  CHECK(scene.pool.stats().captured == mebibyte);
  fake_cuda::complete(scene.second);
  CHECK(scene.pool.stats().captured == 0);
  scene.pool.trim();
  CHECK(scene.pool.stats().held == 0);
}

TEST_CASE("branches of a capture get memory of their own, and share it after the join") {
  pool_scene scene;
  begin_capture(scene.first);
  submit_work(scene.first);
  order(scene.first, scene.second);
  void* const p = turn(scene, mebibyte, scene.first);
  void* const q = turn(scene, mebibyte, scene.second);
  CHECK(p != q);
  CHECK(turn(scene, mebibyte, scene.first) == p);
  order(scene.second, scene.first);
  submit_work(scene.first);
  void* const both[] = {scene.pool.allocate(mebibyte, scene.first),
                        scene.pool.allocate(mebibyte, scene.first)};
  CHECK(std::count(both, both + 2, p) == 1);
  CHECK(std::count(both, both + 2, q) == 1);
  for (void* const block : both) {
    scene.pool.deallocate(block, mebibyte, scene.first);
  }
  check_valid_to_the_end(scene.first);
}

TEST_CASE("an edge that lets the next node begin early is no order") {
  for (const bool before_the_free : {true, false}) {
    pool_scene scene;
    begin_capture(scene.first);
    void* const p = scene.pool.allocate(mebibyte, scene.first);
    submit_work(scene.first);
    if (before_the_free) {
      fake_cuda::make_programmatic(scene.first);
    }
    scene.pool.deallocate(p, mebibyte, scene.first);
    fake_cuda::make_programmatic(scene.first);
    CHECK(turn(scene, mebibyte, scene.first) != p);
    submit_work(scene.first);
    CHECK(turn(scene, mebibyte, scene.first) != p);
    check_valid_to_the_end(scene.first);
  }
}

TEST_CASE("a graph that cannot be watched gets no memory, and the error says why") {
  for (const char* const call :
       {"cuUserObjectCreate", "cuGraphRetainUserObject", "cuStreamGetCaptureInfo"}) {
    pool_scene scene;
    begin_capture(scene.first);
    fake_cuda::fail(call, cudaErrorInvalidValue);
    CHECK_THROWS_AS((void)scene.pool.allocate(mebibyte, scene.first), pagesift::backend_error);
    CHECK(scene.pool.stats().held == 0);
    turn(scene, mebibyte, scene.first);
    check_valid_to_the_end(scene.first);
    CHECK(scene.pool.stats().captured == 0);
  }
}

TEST_CASE("a block freed into a graph that cannot be watched is never used again") {
  pool_scene scene;
  void* const p = scene.pool.allocate(mebibyte, scene.second);
  void* const known = scene.pool.allocate(256, scene.first);
  begin_capture(scene.first);
  fake_cuda::fail("cuUserObjectCreate", cudaErrorInvalidValue);
  scene.pool.deallocate(p, mebibyte, scene.first);
  check_valid_to_the_end(scene.first);
  CHECK(scene.pool.stats().captured == mebibyte);
  scene.pool.trim();
  CHECK(turn(scene, mebibyte, scene.second) != p);
  scene.pool.deallocate(known, 256, scene.first);
}

TEST_CASE("a free on a stream known to capture leaves the capture valid, and its block waits") {
  pool_scene scene{pagesift::gibibyte, eager_seals()};
  void* const p = scene.pool.allocate(mebibyte, scene.first);
  begin_capture(scene.first);
  turn(scene, 256, scene.first);
  scene.pool.deallocate(p, mebibyte, scene.first);
  CHECK(turn(scene, mebibyte, scene.second) != p);
  check_valid_to_the_end(scene.first);
  CHECK(turn(scene, mebibyte, scene.first) != p);  // a fence has to say that its use is complete
  scene.pool.trim();
  CHECK(scene.pool.stats().held == 0);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("while a capture is known, frees elsewhere ask once and go the short way") {
  pool_scene scene;
  void* const p = turn(scene, mebibyte, scene.second);
  begin_capture(scene.first);
  turn(scene, mebibyte, scene.first);
  fake_cuda::clear_log();
  CHECK(turn(scene, mebibyte, scene.second) == p);
  CHECK(fake_cuda::count("cuStreamIsCapturing") == 2);  // at the request and at the free
  check_valid_to_the_end(scene.first);
}

TEST_CASE("a free on a stream whose capture is over tells the pool, which asks no more at frees") {
  pool_scene scene;
  turn(scene, mebibyte, scene.first);
  begin_capture(scene.first);
  turn(scene, mebibyte, scene.first);
  cudaGraph_t const graph = end_capture(scene.first);  // goes on to live
  void* const p = turn(scene, mebibyte, scene.first);
  turn(scene, mebibyte, scene.first);
  fake_cuda::clear_log();
  CHECK(turn(scene, mebibyte, scene.first) == p);
  CHECK(fake_cuda::count("cuStreamIsCapturing") == 1);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
}

TEST_CASE("a capture on a thread's own default stream has memory of its own") {
  pool_scene scene;
  begin_capture(cudaStreamPerThread);
  void* const p = turn(scene, mebibyte, cudaStreamPerThread);
  std::thread{[&] {
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    void* const q = turn(scene, mebibyte, cudaStreamPerThread);
    CHECK(q != p);
    CHECK(turn(scene, mebibyte, cudaStreamPerThread) == q);
  }}.join();
  CHECK(turn(scene, mebibyte, cudaStreamPerThread) == p);
  check_valid_to_the_end(cudaStreamPerThread);
  CHECK(scene.pool.stats().captured == 0);
}

TEST_CASE("frees, misses, trims and shortages in another thread leave a capture valid") {
  for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                          cudaStreamCaptureModeRelaxed}) {
    for (const bool known : {true, false}) {
      pool_scene scene{64 * mebibyte, eager_seals()};
      const cudaStream_t captured = new_stream();
      begin_capture(captured, mode);
      if (known) {
        turn(scene, 256, captured);
      }
      std::thread{[&] {
        turn(scene, 4 * mebibyte, scene.first);
        turn(scene, 4 * mebibyte, scene.second);
        turn(scene, 30 * mebibyte, scene.second);
        turn(scene, 50 * mebibyte, scene.first);
        void* const held = scene.pool.allocate(mebibyte, scene.first);
        CHECK_THROWS_AS((void)scene.pool.allocate(64 * mebibyte, scene.first),
                        pagesift::out_of_memory);
        scene.pool.deallocate(held, mebibyte, scene.first);
        scene.pool.deallocate_sync(scene.pool.allocate_sync(mebibyte), mebibyte);
        scene.pool.trim();
      }}.join();
      turn(scene, 256, captured);
      check_valid_to_the_end(captured);
    }
  }
}

TEST_CASE("a shortage beside a capture waits for all work and leaves the capture valid") {
  pool_scene scene{64 * mebibyte};
  const cudaStream_t third = new_stream();
  turn(scene, 30 * mebibyte, third);  // no event covers it: only a fence helps
  begin_capture(scene.first);
  turn(scene, 50 * mebibyte, scene.first);
  CHECK_FALSE(fake_cuda::pending(third));
  CHECK(scene.pool.stats().fences > 0);
  check_valid_to_the_end(scene.first);
}

TEST_CASE("the end of a pool leaves a capture valid") {
  cudaStream_t captured = nullptr;
  {
    pool_scene scene;
    captured = new_stream();
    turn(scene, mebibyte, scene.first);
    begin_capture(captured);
  }
  check_valid_to_the_end(captured);
}

TEST_CASE("a pool that ends before its graphs leaves them their memory") {
  cudaGraphExec_t replay = nullptr;
  {
    pool_scene scene;
    begin_capture(scene.first);
    turn(scene, mebibyte, scene.first);
    cudaGraph_t const graph = end_capture(scene.first);
    REQUIRE(cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess);
    REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  }
  CHECK(fake_cuda::live_pieces() > 0);
  CHECK(cudaGraphExecDestroy(replay) == cudaSuccess);  // whose end nobody listens to any more
  CHECK(fake_cuda::misuse().empty());
}

TEST_CASE("an invalidated capture gets a typed error") {
  pool_scene scene;
  begin_capture(scene.first);
  turn(scene, mebibyte, scene.first);
  REQUIRE(cudaStreamQuery(scene.second) == cudaErrorStreamCaptureUnsupported);
  CHECK_THROWS_AS((void)scene.pool.allocate(mebibyte, scene.first), pagesift::capture_error);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(scene.first, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(scene.pool.stats().captured == 0);
  (void)cudaGetLastError();
}

TEST_CASE("a shortage on a capturing stream is out_of_memory, and the capture goes on") {
  for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                          cudaStreamCaptureModeRelaxed}) {
    for (const auto memory : {pagesift::backing::plain, pagesift::backing::virtual_memory}) {
      pagesift::pool_options options;
      options.backing = memory;
      pool_scene scene{64 * mebibyte, options};
      void* const kept = scene.pool.allocate(16 * mebibyte, scene.second);
      turn(scene, 30 * mebibyte, scene.second);
      begin_capture(scene.first, mode);
      void* const p = turn(scene, mebibyte, scene.first);
      CHECK_THROWS_AS((void)scene.pool.allocate(56 * mebibyte, scene.first),
                      pagesift::out_of_memory);
      CHECK(cudaPeekAtLastError() == cudaSuccess);
      CHECK(turn(scene, mebibyte, scene.first) == p);
      check_valid_to_the_end(scene.first);
      scene.pool.deallocate(kept, 16 * mebibyte, scene.second);
    }
  }
}

TEST_CASE("frees on a stream whose capture the pool never heard of leave the capture valid") {
  for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                          cudaStreamCaptureModeRelaxed}) {
    for (const bool sealed : {false, true}) {
      pool_scene scene{pagesift::gibibyte, sealed ? eager_seals() : pagesift::pool_options{}};
      turn(scene, 256, scene.second);
      void* const small = scene.pool.allocate(mebibyte, scene.first);
      void* const large = scene.pool.allocate(40 * mebibyte, scene.first);
      submit_work(scene.first);
      begin_capture(scene.first, mode);
      scene.pool.deallocate(small, mebibyte, scene.first);
      CHECK(turn(scene, mebibyte, scene.second) != small);
      scene.pool.deallocate(large, 40 * mebibyte, scene.first);
      CHECK(turn(scene, 40 * mebibyte, scene.second) != large);
      scene.pool.trim();
      CHECK(cudaPeekAtLastError() == cudaSuccess);
      check_valid_to_the_end(scene.first);
      CHECK(fake_cuda::misuse().empty());
    }
  }
}
