// What a failing call is taken for.
#include "backend_calls.hpp"

TEST_CASE("code 2 alone is shortage, and any other failure comes back as what it is") {
  for (const backend_call& call : backend_calls()) {
    if (call.driver_function == "cuMemGetInfo") {
      continue;  // it reports no status
    }
    CAPTURE(call.driver_function);
    for (const int code : {1, 2, 3, 46, 201, 400, 700, 719, 900, 999}) {
      CAPTURE(code);
      fake_cuda::reset();
      backend_scene scene;
      fake_cuda::fail(call.driver_function, code, 1, 2);
      const pagesift::status result = call.make(scene);
      CHECK(result.code == code);
      CHECK(result.call == call.driver_function);
      CHECK(result.shortage() == (code == 2));
      CHECK(result.failed() == (code != 2));
    }
  }
}

TEST_CASE("after a fault on the device no event is complete and the fault has its name") {
  fake_cuda::reset();
  backend_scene scene;
  fake_cuda::break_device(0, cudaErrorIllegalAddress);
  const pagesift::status result = scene.backend.query(scene.event);
  CHECK(result.failed());
  CHECK(result.code == cudaErrorIllegalAddress);
  CHECK(scene.backend.describe(result.code) ==
        "cudaErrorIllegalAddress: an illegal memory access was encountered");
  void* p = nullptr;
  CHECK(scene.backend.acquire(1000, p).failed());
}

TEST_CASE("a device that is broken has the memory it had, none of it free") {
  fake_cuda::reset(1, 5 * pagesift::mebibyte);
  const auto backend = pagesift::cuda_backend::open(0);
  fake_cuda::break_device(0, cudaErrorIllegalAddress);
  CHECK(backend.memory().free_bytes == 0);
  CHECK(backend.memory().total_bytes == 5 * pagesift::mebibyte);
}

TEST_CASE("a context that cannot be made current fails every call and is not popped") {
  for (const backend_call& call : backend_calls()) {
    fake_cuda::reset();
    backend_scene scene;
    REQUIRE(cudaSetDevice(1) == cudaSuccess);
    fake_cuda::fail("cuCtxPushCurrent", cudaErrorContextIsDestroyed, 1, 10);
    fake_cuda::clear_log();
    const pagesift::status result = call.make(scene);
    if (fake_cuda::count("cuCtxPushCurrent") != 0) {
      CAPTURE(call.driver_function);
      CHECK((result.code == cudaErrorContextIsDestroyed || call.driver_function == "cuMemGetInfo"));
    }
    CHECK(fake_cuda::context_depth() == 1);
  }
}
