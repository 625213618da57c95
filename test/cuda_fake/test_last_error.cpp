// The runtime's last error after a call of the backend is what it was before.
#include "backend_calls.hpp"

namespace {

/// Runs every call once in a fresh machine, with `before` pending.
void last_error_is_kept(cudaError_t before, int injected) {
  for (const backend_call& call : backend_calls()) {
    CAPTURE(call.driver_function);
    fake_cuda::reset();
    backend_scene scene;
    if (injected != 0) {
      fake_cuda::fail(call.driver_function, injected);
    }
    if (before != cudaSuccess) {
      REQUIRE(cudaSetDevice(99) == before);
    }
    (void)call.make(scene);
    CHECK(fake_cuda::count(call.driver_function) >= 1);
    CHECK(cudaPeekAtLastError() == before);
  }
}

}  // namespace

TEST_CASE("no call leaves a last error, whether it works or fails") {
  for (const int injected : {0, 2, 600, 700}) {
    CAPTURE(injected);
    last_error_is_kept(cudaSuccess, injected);
  }
}

TEST_CASE("an error that was pending is still pending, whether a call works or fails") {
  for (const int injected : {0, 2, 600, 700}) {
    CAPTURE(injected);
    last_error_is_kept(cudaErrorInvalidDevice, injected);
  }
}

TEST_CASE("a query that finds an event pending leaves no last error") {
  fake_cuda::reset();
  backend_scene scene;
  CHECK(scene.backend.query(scene.event).not_ready());
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("a shortage leaves no last error") {
  fake_cuda::reset(1, pagesift::mebibyte);
  const auto backend = pagesift::cuda_backend::open(0);
  void* p = nullptr;
  CHECK(backend.acquire(pagesift::mebibyte + 1, p).shortage());
  CHECK(backend.acquire(pagesift::mebibyte, p).ok());
  CHECK(backend.acquire(1000, p).shortage());
  CHECK(p == nullptr);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}
