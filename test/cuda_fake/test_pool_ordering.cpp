// Which block a stream gets, with CUDA's streams and events.
#include "pool_scene.hpp"

#include <thread>
#include <vector>

TEST_CASE("no block is published before its event is recorded") {
  pool_scene scene{pagesift::gibibyte, eager_seals()};
  void* const other = scene.pool.allocate(mebibyte, scene.second);
  void* const p = scene.pool.allocate(mebibyte, scene.first);
  submit_work(scene.first);
  void* taken_meanwhile = nullptr;
  fake_cuda::on_call("cuEventRecord", [&] {
    fake_cuda::on_call("cuEventRecord", {});
    std::thread{[&] { taken_meanwhile = scene.pool.allocate(mebibyte, scene.second); }}.join();
  });
  scene.pool.deallocate(p, mebibyte, scene.first);
  CHECK(taken_meanwhile != nullptr);
  CHECK(taken_meanwhile != p);
  scene.pool.deallocate(taken_meanwhile, mebibyte, scene.second);
  scene.pool.deallocate(other, mebibyte, scene.second);
}

TEST_CASE("a stream with a destroyed stream's handle does not get its memory before it is done") {
  pool_scene scene;
  for (int round = 0; round < 20; ++round) {
    const cudaStream_t old = new_stream();
    void* const p = scene.pool.allocate(mebibyte, old);
    submit_work(old);
    scene.pool.deallocate(p, mebibyte, old);
    REQUIRE(cudaStreamDestroy(old) == cudaSuccess);
    const cudaStream_t fresh = new_stream();
    REQUIRE(fresh == old);
    void* const q = scene.pool.allocate(mebibyte, fresh);
    CHECK(q != p);
    scene.pool.deallocate(q, mebibyte, fresh);
    REQUIRE(cudaStreamDestroy(fresh) == cudaSuccess);
  }
}

TEST_CASE("another thread's default stream does not get a block before its event") {
  pool_scene scene;
  void* const p = scene.pool.allocate(mebibyte, cudaStreamPerThread);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  submit_work(cudaStreamPerThread);
  scene.pool.deallocate(p, mebibyte, cudaStreamPerThread);
  std::thread{[&] {
    void* const q = scene.pool.allocate(mebibyte, cudaStreamPerThread);
    CHECK(q != p);
    scene.pool.deallocate(q, mebibyte, cudaStreamPerThread);
  }}.join();
  void* const again = scene.pool.allocate(mebibyte, cudaStreamPerThread);
  CHECK(again == p);
  scene.pool.deallocate(again, mebibyte, cudaStreamPerThread);
}

TEST_CASE("memory of destroyed streams is found again without touching them") {
  pool_scene scene{256 * mebibyte};
  std::vector<cudaStream_t> streams;
  for (int i = 0; i < 32; ++i) {
    streams.push_back(new_stream());
    void* const p = scene.pool.allocate(4 * mebibyte, streams.back());
    submit_work(streams.back());
    scene.pool.deallocate(p, 4 * mebibyte, streams.back());
  }
  for (const cudaStream_t stream : streams) {
    REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
  }
  void* const large = scene.pool.allocate(240 * mebibyte, nullptr);
  scene.pool.deallocate(large, 240 * mebibyte, nullptr);
  CHECK(fake_cuda::misuse().empty());
}

TEST_CASE("streams that come and go leave a bounded number of events and bounded memory") {
  pool_scene scene;
  for (int i = 0; i < 5000; ++i) {
    const cudaStream_t stream = new_stream();
    void* const p = scene.pool.allocate(mebibyte, stream);
    submit_work(stream);
    scene.pool.deallocate(p, mebibyte, stream);
    REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
    REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
  }
  CHECK(fake_cuda::live_events() <= 512);
  CHECK(fake_cuda::used_bytes(0) <= 512 * mebibyte);
  CHECK(fake_cuda::misuse().empty());
}

TEST_CASE("a block of a pool on another device than the current one is ordered like any") {
  pool_scene scene{pagesift::gibibyte, eager_seals()};
  void* const p = scene.pool.allocate(mebibyte, scene.first);
  submit_work(scene.first);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  void* const seen = scene.pool.allocate(mebibyte, scene.second);
  scene.pool.deallocate(p, mebibyte, scene.first);
  void* const q = scene.pool.allocate(mebibyte, scene.second);
  CHECK(q != p);
  fake_cuda::complete(scene.first);
  void* const r = scene.pool.allocate(mebibyte, scene.second);
  CHECK(r == p);
  for (void* const block : {seen, q, r}) {
    scene.pool.deallocate(block, mebibyte, scene.second);
  }
  int device = -1;
  CHECK(cudaGetDevice(&device) == cudaSuccess);
  CHECK(device == 1);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}
