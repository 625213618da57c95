// The current device is the same after a call, and does not matter to it.
#include "backend_calls.hpp"

#include <thread>

namespace {

int current_device() {
  int device = -1;
  REQUIRE(cudaGetDevice(&device) == cudaSuccess);
  return device;
}

}  // namespace

TEST_CASE("every call works on its own device while another is current") {
  for (const backend_call& call : backend_calls()) {
    CAPTURE(call.driver_function);
    fake_cuda::reset();
    backend_scene scene;
    REQUIRE(cudaSetDevice(1) == cudaSuccess);
    const pagesift::status result = call.make(scene);
    CHECK((result.ok() || result.not_ready()));
    CHECK(current_device() == 1);
    CHECK(fake_cuda::context_depth() == 1);
    CHECK(fake_cuda::used_bytes(1) == 0);
  }
}

TEST_CASE("a failing call leaves the current device alone too") {
  for (const backend_call& call : backend_calls()) {
    CAPTURE(call.driver_function);
    fake_cuda::reset();
    backend_scene scene;
    fake_cuda::fail(call.driver_function, 700);
    REQUIRE(cudaSetDevice(1) == cudaSuccess);
    (void)call.make(scene);
    CHECK(current_device() == 1);
    CHECK(fake_cuda::context_depth() == 1);
  }
}

TEST_CASE("every call works in a thread that has no context, and gives it none") {
  for (const backend_call& call : backend_calls()) {
    CAPTURE(call.driver_function);
    fake_cuda::reset();
    backend_scene scene;
    std::thread{[&] {
      const pagesift::status result = call.make(scene);
      CHECK((result.ok() || result.not_ready()));
      CHECK(fake_cuda::context_depth() == 0);
    }}.join();
  }
}

TEST_CASE("no context is switched where the device is current already") {
  fake_cuda::reset();
  backend_scene scene;
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  fake_cuda::clear_log();
  CHECK(scene.backend.record(scene.event, scene.stream).ok());
  CHECK(fake_cuda::count("cuCtxPushCurrent") == 0);
}

TEST_CASE("the default stream is that of the backend's device") {
  fake_cuda::reset();
  backend_scene scene;
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  CHECK(scene.backend.record(scene.event, nullptr).ok());
  CHECK(scene.backend.wait(nullptr, scene.event).ok());
  CHECK(scene.backend.inspect(cudaStreamPerThread).result.ok());
}

TEST_CASE("the current device is the runtime's, with a context and without") {
  fake_cuda::reset();
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  CHECK(pagesift::cuda_backend::current_device() == 1);
  CHECK(pagesift::cuda_backend::open(-1).device() == 1);
  std::thread{[] {
    CHECK(pagesift::cuda_backend::current_device() == 0);
    CHECK(pagesift::cuda_backend::open(-1).device() == 0);
    CHECK(fake_cuda::context_depth() == 0);
  }}.join();
}
