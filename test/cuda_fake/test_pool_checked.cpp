// Checked mode over CUDA: what only several devices, real bytes and captures show.
#include "pool_scene.hpp"

#include <cstddef>
#include <vector>

namespace {

using pagesift::misuse;
using pagesift::misuse_report;

/// A checked pool on device 0 whose reports are kept.
struct checked_scene {
  explicit checked_scene(pagesift::pool_options more = {})
      : scene{pagesift::gibibyte, options(std::move(more))} {}

  misuse_report only_report() {
    REQUIRE(reports.size() == 1);
    const misuse_report report = reports.front();
    reports.clear();
    return report;
  }

  std::vector<misuse_report> reports;
  pool_scene scene;
  pagesift::cuda_pool& pool = scene.pool;
  cudaStream_t stream = scene.first;

 private:
  pagesift::pool_options options(pagesift::pool_options more) {
    more.checks = pagesift::checks::full;
    more.on_misuse = [this](const misuse_report& r) { reports.push_back(r); };
    return more;
  }
};

cudaStream_t stream_of_device_1() {
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  return new_stream();
}

}  // namespace

TEST_CASE("a request on another device's stream is reported and refused") {
  checked_scene t;
  const cudaStream_t there = stream_of_device_1();
  CHECK_THROWS_AS((void)t.pool.allocate(1000, there), pagesift::invalid_argument);
  const misuse_report report = t.only_report();
  CHECK(report.kind == misuse::wrong_device);
  CHECK(report.given_bytes == 1000);
  CHECK(t.pool.stats().in_use == 0);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("a free on another device's stream is reported, and the block comes back") {
  checked_scene t;
  void* const p = t.pool.allocate(1000, t.stream);
  const cudaStream_t there = stream_of_device_1();
  fake_cuda::clear_log();
  t.pool.deallocate(p, 1000, there);
  CHECK(t.only_report().kind == misuse::wrong_device);
  CHECK(t.pool.stats().in_use == 0);
  CHECK(t.pool.stats().streams == 1);
  CHECK(fake_cuda::count("cuMemsetD8Async") == 0);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(fake_cuda::misuse().empty());
}

TEST_CASE("calls while another device is current are no mistake") {
  checked_scene t;
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  for (const cudaStream_t stream : {t.stream, cudaStream_t{}, cudaStreamPerThread}) {
    void* const p = t.pool.allocate(1000, stream);
    t.pool.deallocate(p, 1000, stream);
  }
  CHECK(t.reports.empty());
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("real bytes written outside of a block, or after its free, are found") {
  for (const auto backing : {pagesift::backing::plain, pagesift::backing::virtual_memory}) {
    pagesift::pool_options options;
    options.backing = backing;
    checked_scene t{options};
    auto* const p = static_cast<unsigned char*>(t.pool.allocate(1000, t.stream));
    p[1003] = 1;
    t.pool.deallocate(p, 1000, t.stream);
    const misuse_report overrun = t.only_report();
    CHECK(overrun.kind == misuse::overrun);
    CHECK(overrun.first_wrong_offset == 1003);
    CHECK(overrun.wrong_bytes == 1);
    p[17] = 1;
    void* const q = t.pool.allocate(1000, t.stream);
    const misuse_report late = t.only_report();
    CHECK(late.kind == misuse::use_after_free);
    CHECK(late.first_wrong_offset == 17);
    t.pool.deallocate(q, 1000, t.stream);
    CHECK(t.reports.empty());
  }
}

TEST_CASE("a checked pool leaves captures of other streams and of its own valid") {
  checked_scene t;
  void* const before = t.pool.allocate(1000, t.stream);
  cudaStream_t blocking = nullptr;
  REQUIRE(cudaStreamCreate(&blocking) == cudaSuccess);
  for (const cudaStream_t captured : {t.stream, t.scene.second, blocking}) {
    REQUIRE(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal) == cudaSuccess);
    const cudaStream_t other = captured == t.stream ? t.scene.second : t.stream;
    for (const cudaStream_t used : {other, cudaStream_t{}}) {
      void* const p = t.pool.allocate(5000, used);
      t.pool.deallocate(p, 5000, used);
    }
    if (captured == t.stream) {
      t.pool.deallocate(before, 1000, captured);
    }
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(captured, &graph) == cudaSuccess);
  }
  CHECK(t.reports.empty());
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("a pool that announces its memory works where no tool listens") {
  pagesift::pool_options options;
  options.announce = true;
  pool_scene scene{pagesift::gibibyte, options};
  for (int i = 0; i < 3; ++i) {
    void* const p = scene.pool.allocate(1000, scene.first);
    scene.pool.deallocate(p, 1000, scene.first);
  }
  scene.pool.trim();
  CHECK(scene.pool.stats().held == 0);
  CHECK(fake_cuda::count("cuMemCreate") == 0);
  CHECK(fake_cuda::count("cuMemAlloc") > 0);
}
