// device_buffer on the CUDA backend: whose stream, whose device, and what a failed copy leaves.
#include "fake_cuda.hpp"

#include <pagesift/pagesift.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace {

using buffer = pagesift::device_buffer<int>;

class stream_of_device {
 public:
  explicit stream_of_device(int device) {
    REQUIRE(cudaSetDevice(device) == cudaSuccess);
    REQUIRE(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
  }
  ~stream_of_device() { (void)cudaStreamDestroy(stream_); }
  stream_of_device(const stream_of_device&) = delete;
  stream_of_device& operator=(const stream_of_device&) = delete;

  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// The stream of the one call of that name since the log was cleared.
cudaStream_t stream_of(const std::string& name) {
  REQUIRE(fake_cuda::count(name) == 1);
  for (const fake_cuda::call& call : fake_cuda::log()) {
    if (call.name == name) {
      return call.stream;
    }
  }
  return nullptr;
}

void leave_an_error_pending() {
  int not_device_memory = 0;
  REQUIRE(cudaFree(&not_device_memory) == cudaErrorInvalidValue);
}

TEST_CASE("copies run on the buffer's stream and are done when they return") {
  fake_cuda::reset();
  const stream_of_device side{0};
  pagesift::device_pool pool;
  buffer device{3, pool, side.get()};
  const std::vector<int> in{1, 2, 3};
  std::vector<int> out(3);

  fake_cuda::clear_log();
  device.scatter(in);
  CHECK(stream_of("cuMemcpyHtoDAsync") == side.get());
  CHECK_FALSE(fake_cuda::pending(side.get()));
  device.gather(out);
  CHECK(stream_of("cuMemcpyDtoHAsync") == side.get());
  CHECK_FALSE(fake_cuda::pending(side.get()));
  CHECK(out == in);
}

TEST_CASE("copies allocate nothing") {
  fake_cuda::reset();
  pagesift::device_pool pool;
  buffer device{1000, pool};
  std::vector<int> host(1000);
  const pagesift::pool_stats before = pool.stats();
  const std::size_t allocations = fake_cuda::live_allocations();
  device.scatter(host);
  device.gather(host);
  CHECK(pool.stats().hits + pool.stats().misses == before.hits + before.misses);
  CHECK(fake_cuda::live_allocations() == allocations);
}

TEST_CASE("a buffer belongs to its pool's device whichever device is current") {
  fake_cuda::reset();
  pagesift::pool_options options;
  options.device = 1;
  pagesift::device_pool pool{options};
  const stream_of_device side{1};
  {
    buffer on_default{100, pool};
    buffer on_side{100, pool, side.get()};
    std::vector<int> host(100, 1);
    on_default.scatter(host);
    on_default.gather(host);
    on_side.scatter(host);
    on_side.gather(host);
    CHECK(fake_cuda::used_bytes(0) == 0);
    CHECK(fake_cuda::used_bytes(1) > 0);
  }
  int current = -1;
  CHECK(cudaGetDevice(&current) == cudaSuccess);
  CHECK(current == 0);
  CHECK(pool.stats().in_use == 0);
  CHECK(pool.stats().rejected_frees == 0);
}

TEST_CASE("a buffer is freed in the order of its stream") {
  fake_cuda::reset();
  const stream_of_device side{0};
  const stream_of_device other{0};
  pagesift::device_pool pool;
  const void* memory = nullptr;
  {
    const buffer device{1000, pool, side.get()};
    memory = device.data();
    REQUIRE(cudaMemsetAsync(const_cast<void*>(memory), 0, 4000, side.get()) == cudaSuccess);
  }
  const buffer elsewhere{1000, pool, other.get()};
  const buffer here{1000, pool, side.get()};
  CHECK(elsewhere.data() != memory);
  CHECK(here.data() == memory);
}

TEST_CASE("a failed copy says which call and code, and leaves no error behind") {
  fake_cuda::reset();
  pagesift::device_pool pool;
  buffer device{3, pool};
  std::vector<int> host{1, 2, 3};

  fake_cuda::fail("cuMemcpyHtoDAsync", cudaErrorIllegalAddress);
  try {
    device.scatter(host);
    FAIL("the copy was made to fail");
  } catch (const pagesift::backend_error& e) {
    CHECK(e.code() == cudaErrorIllegalAddress);
    CHECK(std::string{e.what()}.find("cuMemcpyHtoDAsync failed with code 700") !=
          std::string::npos);
  }
  CHECK(cudaPeekAtLastError() == cudaSuccess);

  fake_cuda::fail("cuStreamSynchronize", cudaErrorLaunchFailure);
  CHECK_THROWS_AS(device.gather(host), pagesift::backend_error);
  CHECK(cudaPeekAtLastError() == cudaSuccess);

  device.scatter(host);
  CHECK_NOTHROW(device.gather(host));
}

TEST_CASE("a failed copy leaves an error that was pending before as it was") {
  fake_cuda::reset();
  pagesift::device_pool pool;
  buffer device{3, pool};
  std::vector<int> host(3);
  leave_an_error_pending();
  fake_cuda::fail("cuMemcpyDtoHAsync", cudaErrorIllegalAddress);
  CHECK_THROWS_AS(device.gather(host), pagesift::backend_error);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
}

TEST_CASE("a copy on a capturing stream is refused and leaves the capture valid") {
  fake_cuda::reset();
  const stream_of_device side{0};
  pagesift::device_pool pool;
  buffer device{3, pool, side.get()};
  std::vector<int> host(3);
  REQUIRE(cudaStreamBeginCapture(side.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
  try {
    device.scatter(host);
    FAIL("the stream is capturing");
  } catch (const pagesift::backend_error& e) {
    CHECK(e.code() == cudaErrorStreamCaptureUnsupported);
  }
  CHECK_THROWS_AS(device.gather(host), pagesift::backend_error);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(side.get(), &graph) == cudaSuccess);
  CHECK(graph != nullptr);
  CHECK_NOTHROW(device.scatter(host));
}

TEST_CASE("a copy beside another stream's capture leaves that capture valid") {
  fake_cuda::reset();
  const stream_of_device side{0};
  const stream_of_device capturing{0};
  pagesift::device_pool pool;
  buffer device{3, pool, side.get()};
  std::vector<int> host(3);
  REQUIRE(cudaStreamBeginCapture(capturing.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK_NOTHROW(device.scatter(host));
  CHECK_NOTHROW(device.gather(host));
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(capturing.get(), &graph) == cudaSuccess);
  CHECK(graph != nullptr);
}

TEST_CASE("a free whose stream cannot be asked does not stop an exception on its way") {
  fake_cuda::reset();
  const stream_of_device side{0};
  pagesift::device_pool pool;
  const auto fail_half_way = [&] {
    const buffer device{1000, pool, side.get()};
    fake_cuda::fail("cuStreamIsCapturing", cudaErrorIllegalAddress, 1, 100);
    throw std::runtime_error{"first"};
  };
  CHECK_THROWS_WITH_AS(fail_half_way(), "first", std::runtime_error);
  CHECK(pool.stats().in_use == 0);
}

TEST_CASE("a shortage of device memory is called so") {
  fake_cuda::reset(1, 8 * pagesift::mebibyte);
  pagesift::device_pool pool;
  CHECK_THROWS_WITH_AS((buffer{1'000'000'000, pool}),
                       doctest::Contains("out of device memory: requested 4000000000 bytes"),
                       pagesift::out_of_memory);
}

}  // namespace
