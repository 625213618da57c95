// The fake itself: where CUDA is strict it must be, or no test on it could go red.
#include "fake_cuda.hpp"

#include <pagesift/backend/cuda_driver.hpp>

#include <doctest/doctest.h>

#include <thread>

TEST_CASE("a failing call of the runtime is the last error until it is read") {
  fake_cuda::reset();
  cudaEvent_t event = nullptr;
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
  CHECK(cudaEventQuery(event) == cudaErrorNotReady);
  CHECK(cudaPeekAtLastError() == cudaErrorNotReady);
  CHECK(cudaGetLastError() == cudaErrorNotReady);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("the last error belongs to a thread") {
  fake_cuda::reset();
  int not_device_memory = 0;
  CHECK(cudaFree(&not_device_memory) == cudaErrorInvalidValue);
  std::thread{[] { CHECK(cudaPeekAtLastError() == cudaSuccess); }}.join();
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidValue);
}

TEST_CASE("a new stream has the handle of the one destroyed last, and another id") {
  fake_cuda::reset();
  cudaStream_t first = nullptr;
  cudaStream_t second = nullptr;
  unsigned long long first_id = 0;
  unsigned long long second_id = 0;
  REQUIRE(cudaStreamCreate(&first) == cudaSuccess);
  REQUIRE(cudaStreamGetId(first, &first_id) == cudaSuccess);
  REQUIRE(cudaStreamDestroy(first) == cudaSuccess);
  REQUIRE(cudaStreamCreate(&second) == cudaSuccess);
  REQUIRE(cudaStreamGetId(second, &second_id) == cudaSuccess);
  CHECK(first == second);
  CHECK(first_id != second_id);
}

TEST_CASE("an event recorded on a destroyed stream stays pending until the work is done") {
  fake_cuda::reset();
  cudaEvent_t event = nullptr;
  cudaStream_t stream = nullptr;
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(cudaEventQuery(event) == cudaErrorNotReady);
  fake_cuda::complete_all();
  CHECK(cudaEventQuery(event) == cudaSuccess);
}

TEST_CASE("a stream that waits for an event runs after what the event covers") {
  fake_cuda::reset();
  cudaEvent_t event = nullptr;
  cudaStream_t first = nullptr;
  cudaStream_t second = nullptr;
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  REQUIRE(cudaStreamCreate(&first) == cudaSuccess);
  REQUIRE(cudaStreamCreate(&second) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, first) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(second, event, 0) == cudaSuccess);
  fake_cuda::complete(second);
  CHECK_FALSE(fake_cuda::pending(first));
}

TEST_CASE("the legacy default stream runs after all streams but the non-blocking ones") {
  fake_cuda::reset();
  cudaStream_t blocking = nullptr;
  cudaStream_t independent = nullptr;
  REQUIRE(cudaStreamCreate(&blocking) == cudaSuccess);
  REQUIRE(cudaStreamCreateWithFlags(&independent, cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(nullptr, 0, 0, blocking) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(nullptr, 0, 0, independent) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(nullptr, 0, 0, cudaStreamLegacy) == cudaSuccess);
  fake_cuda::complete(cudaStreamLegacy);
  CHECK_FALSE(fake_cuda::pending(blocking));
  CHECK(fake_cuda::pending(independent));
}

TEST_CASE("a call that a capture forbids fails and ends the capture") {
  fake_cuda::reset();
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  void* p = nullptr;
  std::thread{[&] { CHECK(cudaMalloc(&p, 1) == cudaErrorStreamCaptureUnsupported); }}.join();
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(graph == nullptr);
}

TEST_CASE("an event cannot be recorded on another device's stream") {
  fake_cuda::reset();
  cudaEvent_t event = nullptr;
  cudaStream_t stream = nullptr;
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  CHECK(cudaEventRecord(event, stream) == cudaErrorInvalidResourceHandle);
}

TEST_CASE("the use of a destroyed stream is noticed") {
  fake_cuda::reset();
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(cudaStreamQuery(stream) != cudaSuccess);
  CHECK(fake_cuda::misuse().size() == 1);
}

TEST_CASE("a fault comes at the call asked for, and the budget is the device's") {
  fake_cuda::reset(1, 1000);
  fake_cuda::fail("cudaMalloc", 700, 2);
  void* p = nullptr;
  CHECK(cudaMalloc(&p, 600) == cudaSuccess);
  CHECK(cudaMalloc(&p, 1) == cudaErrorIllegalAddress);
  CHECK(cudaMalloc(&p, 401) == cudaErrorMemoryAllocation);
  CHECK(fake_cuda::used_bytes(0) == 600);
  CHECK(fake_cuda::count("cudaMalloc") == 3);
}

TEST_CASE(
    "a reset takes what the device has; its context has no id before the runtime is used again") {
  fake_cuda::reset();
  const pagesift::cuda_driver& driver = pagesift::cuda_driver::get();
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  void* p = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  REQUIRE(cudaMalloc(&p, 1000) == cudaSuccess);
  CUcontext context = nullptr;
  unsigned long long before = 0;
  unsigned long long after = 0;
  REQUIRE(driver.primary_ctx_retain(&context, 0) == CUDA_SUCCESS);
  REQUIRE(driver.ctx_get_id(context, &before) == CUDA_SUCCESS);
  REQUIRE(cudaDeviceReset() == cudaSuccess);
  CHECK(driver.ctx_get_id(context, &after) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(fake_cuda::used_bytes(0) == 0);
  CHECK(cudaFree(nullptr) == cudaSuccess);
  CHECK(driver.ctx_get_id(context, &after) == CUDA_SUCCESS);
  CHECK(after != before);
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  CHECK(driver.stream_is_capturing(stream, &capture) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(fake_cuda::misuse().empty());
  CHECK(cudaEventQuery(event) != cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) != cudaSuccess);
  CHECK(cudaFree(p) != cudaSuccess);
  CHECK(fake_cuda::misuse().size() == 3);
}
