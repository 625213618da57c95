// Stream captures outlive the backend's calls.
#include "backend_calls.hpp"

#include <thread>

namespace {

const cudaStreamCaptureMode all_modes[] = {
    cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed};

cudaStream_t capturing_stream(cudaStreamCaptureMode mode, unsigned flags = cudaStreamDefault) {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, flags) == cudaSuccess);
  REQUIRE(cudaStreamBeginCapture(stream, mode) == cudaSuccess);
  return stream;
}

cudaError_t end_capture(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  return cudaStreamEndCapture(stream, &graph);
}

void check_works(const backend_call& call, backend_scene& scene) {
  const pagesift::status result = call.make(scene);
  CHECK((result.ok() || result.not_ready()));
}

}  // namespace

TEST_CASE("every call works beside a capture and leaves it valid") {
  for (const cudaStreamCaptureMode mode : all_modes) {
    CAPTURE(mode);
    for (const backend_call& call : backend_calls()) {
      CAPTURE(call.driver_function);
      for (const bool in_another_thread : {false, true}) {
        CAPTURE(in_another_thread);
        fake_cuda::reset();
        backend_scene scene;
        const cudaStream_t captured = capturing_stream(mode);
        if (in_another_thread) {
          std::thread{[&] { check_works(call, scene); }}.join();
        } else {
          check_works(call, scene);
        }
        CHECK(end_capture(captured) == cudaSuccess);
      }
    }
  }
}

TEST_CASE("a failing call leaves a capture valid too, and the thread's capture mode as it was") {
  for (const backend_call& call : backend_calls()) {
    CAPTURE(call.driver_function);
    fake_cuda::reset();
    backend_scene scene;
    const cudaStream_t captured = capturing_stream(cudaStreamCaptureModeGlobal);
    fake_cuda::fail(call.driver_function, 700);
    (void)call.make(scene);
    cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;
    REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
    CHECK(mode == cudaStreamCaptureModeGlobal);
    CHECK(end_capture(captured) == cudaSuccess);
  }
}

TEST_CASE("a thread that cannot be excepted from captures makes no call that would end one") {
  for (const backend_call& call : backend_calls()) {
    CAPTURE(call.driver_function);
    fake_cuda::reset();
    backend_scene scene;
    const cudaStream_t captured = capturing_stream(cudaStreamCaptureModeGlobal);
    fake_cuda::clear_log();
    fake_cuda::fail("cuThreadExchangeStreamCaptureMode", 999, 1, 8);
    const pagesift::status result = call.make(scene);
    if (fake_cuda::count("cuThreadExchangeStreamCaptureMode") != 0 &&
        call.driver_function != "cuMemGetInfo") {
      CHECK(result.failed());
      CHECK(result.code == 999);
    }
    CHECK(end_capture(captured) == cudaSuccess);
  }
}

TEST_CASE("a capturing stream is recognised and its id not asked for") {
  for (const cudaStreamCaptureMode mode : all_modes) {
    CAPTURE(mode);
    fake_cuda::reset();
    backend_scene scene;
    const cudaStream_t captured = capturing_stream(mode);
    const pagesift::stream_state state = scene.backend.inspect(captured);
    CHECK(state.result.ok());
    CHECK(state.capturing);
    CHECK(end_capture(captured) == cudaSuccess);
    CHECK_FALSE(scene.backend.inspect(captured).capturing);
  }
}

TEST_CASE("a copy on a capturing stream is refused and the capture goes on") {
  fake_cuda::reset();
  backend_scene scene;
  const cudaStream_t captured = capturing_stream(cudaStreamCaptureModeGlobal);
  CHECK(scene.backend.copy_to_device(scene.memory, &scene.word, 4, captured).code ==
        cudaErrorStreamCaptureUnsupported);
  CHECK(scene.backend.copy_to_host(&scene.word, scene.memory, 4, captured).failed());
  CHECK(end_capture(captured) == cudaSuccess);
}

TEST_CASE("a stream whose capture was lost still counts as capturing") {
  fake_cuda::reset();
  backend_scene scene;
  const cudaStream_t captured = capturing_stream(cudaStreamCaptureModeGlobal);
  REQUIRE(cudaStreamQuery(scene.stream) == cudaErrorStreamCaptureUnsupported);
  CHECK(scene.backend.inspect(captured).capturing);
  CHECK(end_capture(captured) == cudaErrorStreamCaptureInvalidated);
}

TEST_CASE("the legacy default stream takes no work while a stream bound to it captures") {
  fake_cuda::reset();
  backend_scene scene;
  const cudaStream_t captured = capturing_stream(cudaStreamCaptureModeRelaxed);
  CHECK(scene.backend.inspect(nullptr).result.ok());
  CHECK(scene.backend.record(scene.event, nullptr).code == cudaErrorStreamCaptureImplicit);
  CHECK(scene.backend.wait(nullptr, scene.event).code == cudaErrorStreamCaptureImplicit);
  CHECK(end_capture(captured) == cudaSuccess);
  CHECK(scene.backend.record(scene.event, nullptr).ok());
}

TEST_CASE("the legacy default stream takes work while an independent stream captures") {
  fake_cuda::reset();
  backend_scene scene;
  const cudaStream_t captured =
      capturing_stream(cudaStreamCaptureModeGlobal, cudaStreamNonBlocking);
  CHECK(scene.backend.record(scene.event, nullptr).ok());
  CHECK(scene.backend.wait(nullptr, scene.event).ok());
  CHECK(end_capture(captured) == cudaSuccess);
}
