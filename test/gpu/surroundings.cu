// What a call must leave alone: the last error, the thread's context, captures.
#include "device_work.hpp"

#include <pagesift/backend/cuda.hpp>
#include <pagesift/core/bytes.hpp>

#include <functional>
#include <thread>
#include <vector>

using pagesift::cuda_backend;

namespace {

struct scene {
  scene() {
    gpu::prepare();
    REQUIRE(backend.create_event(event).ok());
    REQUIRE(backend.create_event(spare).ok());
    REQUIRE(backend.record(event, stream).ok());
  }

  cuda_backend backend = cuda_backend::open(0);
  gpu::stream stream;
  cudaEvent_t event = nullptr;
  cudaEvent_t spare = nullptr;
};

/// All memory of the device in pages of 2 MiB, more than anybody can have.
std::size_t whole_device(const cuda_backend& backend) {
  constexpr std::size_t page = 2 * pagesift::mebibyte;
  return backend.memory().total_bytes / page * page;
}

/// Every call but the fence, with success, shortage and not ready among the results.
std::vector<std::function<pagesift::status(scene&)>> all_calls() {
  return {
      [](scene& s) {
        void* p = nullptr;
        void* everything = nullptr;
        REQUIRE(s.backend.acquire(2 * pagesift::mebibyte, p).ok());
        const unsigned sent = 123;
        unsigned received = 0;
        CHECK(s.backend.copy_to_device(p, &sent, sizeof sent, s.stream).ok());
        CHECK(s.backend.copy_to_host(&received, p, sizeof sent, s.stream).ok());
        CHECK(received == sent);
        CHECK(s.backend.acquire(s.backend.memory().total_bytes, everything).shortage());
        CHECK(s.backend.acquire(s.backend.memory().total_bytes + 1, everything).shortage());
        return s.backend.release(p, 2 * pagesift::mebibyte);
      },
      [](scene& s) {
        const std::size_t bytes = 4 * pagesift::mebibyte;
        void* p = nullptr;
        cuda_backend::physical_type h{};
        cuda_backend::physical_type everything{};
        CHECK(s.backend.can_map({}).ok());
        REQUIRE(s.backend.reserve(bytes, p).ok());
        REQUIRE(s.backend.create(bytes, {}, h).ok());
        REQUIRE(s.backend.map(p, bytes, h, {}).ok());
        CHECK(s.backend.map(p, bytes, h, {}).failed());
        CHECK(s.backend.unmap(p, bytes / 2).failed());
        CHECK(s.backend.create(whole_device(s.backend), {}, everything).shortage());
        CHECK(s.backend.unmap(p, bytes).ok());
        CHECK(s.backend.destroy(h).ok());
        return s.backend.unreserve(p, bytes);
      },
      [](scene& s) { return s.backend.inspect(s.stream).result; },
      [](scene& s) { return s.backend.inspect(cudaStreamPerThread).result; },
      [](scene& s) { return s.backend.record(s.spare, s.stream); },
      [](scene& s) { return s.backend.query(s.event); },
      [](scene& s) { return s.backend.synchronize(s.event); },
      [](scene& s) { return s.backend.wait(s.stream, s.event); },
      [](scene& s) {
        cudaEvent_t event = nullptr;
        REQUIRE(s.backend.create_event(event).ok());
        return s.backend.destroy_event(event);
      },
  };
}

void check_works(scene& s, const std::function<pagesift::status(scene&)>& call) {
  const pagesift::status result = call(s);
  CHECK((result.ok() || result.not_ready()));
}

CUcontext current_context() {
  CUcontext context = nullptr;
  REQUIRE(pagesift::cuda_driver::get().ctx_get_current(&context) == CUDA_SUCCESS);
  return context;
}

}  // namespace

TEST_CASE("a query of an event behind a gate leaves no last error") {
  scene s;
  gpu::gate gate;
  gate.close(s.stream);
  REQUIRE(s.backend.record(s.event, s.stream).ok());
  CHECK(s.backend.query(s.event).not_ready());
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  gate.open();
  CHECK(s.backend.synchronize(s.event).ok());
  CHECK_FALSE(gate.expired());
}

TEST_CASE("no call leaves a last error") {
  scene s;
  for (const auto& call : all_calls()) {
    check_works(s, call);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
  }
  CHECK(s.backend.fence().ok());
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("an error that was pending is still pending after every call") {
  scene s;
  for (const auto& call : all_calls()) {
    REQUIRE(cudaSetDevice(12345) == cudaErrorInvalidDevice);
    check_works(s, call);
    CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  }
}

TEST_CASE("calls work in a thread without a context and leave it without one") {
  scene s;
  std::thread{[&] {
    REQUIRE(current_context() == nullptr);
    for (const auto& call : all_calls()) {
      check_works(s, call);
      CHECK(current_context() == nullptr);
    }
    CHECK(cuda_backend::current_device() == 0);
  }}.join();
}

TEST_CASE("every call but the fence works beside a capture in any mode and leaves it valid") {
  for (const cudaStreamCaptureMode mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
        cudaStreamCaptureModeRelaxed}) {
    CAPTURE(mode);
    for (const bool in_another_thread : {false, true}) {
      CAPTURE(in_another_thread);
      scene s;
      gpu::stream captured;
      gpu::require(cudaStreamBeginCapture(captured, mode));
      const auto call_all = [&] {
        for (const auto& call : all_calls()) {
          check_works(s, call);
        }
      };
      if (in_another_thread) {
        std::thread{call_all}.join();
      } else {
        call_all();
      }
      CHECK(s.backend.inspect(captured).capturing);
      cudaGraph_t graph = nullptr;
      CHECK(cudaStreamEndCapture(captured, &graph) == cudaSuccess);
      gpu::require(cudaGraphDestroy(graph));
      CHECK_FALSE(s.backend.inspect(captured).capturing);
    }
  }
}

TEST_CASE("the legacy default stream takes no work while a stream bound to it captures") {
  scene s;
  cudaStream_t captured = nullptr;
  gpu::require(cudaStreamCreate(&captured));
  gpu::require(cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed));
  CHECK(s.backend.inspect(nullptr).result.ok());
  CHECK(s.backend.record(s.spare, nullptr).code == cudaErrorStreamCaptureImplicit);
  CHECK(s.backend.wait(nullptr, s.event).code == cudaErrorStreamCaptureImplicit);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(captured, &graph) == cudaSuccess);
  gpu::require(cudaGraphDestroy(graph));
  CHECK(s.backend.record(s.spare, nullptr).ok());
  gpu::require(cudaStreamDestroy(captured));
}

TEST_CASE("an illegal request is a failure, not a shortage") {
  scene s;
  int not_device_memory = 0;
  const pagesift::status result = s.backend.release(&not_device_memory, 4);
  CHECK(result.failed());
  CHECK(s.backend.describe(result.code).find("cudaError") == 0);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}
