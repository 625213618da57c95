// Every call of the CUDA backend, for tests of what all of them must keep.
#pragma once

#include "fake_cuda.hpp"

#include <pagesift/backend/cuda.hpp>
#include <pagesift/core/bytes.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

/// What a call works on: a stream and an event recorded on it, with work pending.
struct backend_scene {
  pagesift::cuda_backend backend = pagesift::cuda_backend::open(0);
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  void* memory = nullptr;
  unsigned word = 0;  ///< memory of the host

  /// Device 0 must be current.
  backend_scene() {
    REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
    REQUIRE(backend.create_event(event).ok());
    REQUIRE(backend.record(event, stream).ok());
    REQUIRE(backend.acquire(1000, memory).ok());
  }
};

struct backend_call {
  std::string driver_function;  ///< what the backend calls for it
  std::function<pagesift::status(backend_scene&)> make;
};

/// All calls; those that consume something make it themselves.
inline std::vector<backend_call> backend_calls() {
  using scene = backend_scene;
  return {
      {"cuMemAlloc",
       [](scene& s) {
         void* p = nullptr;
         return s.backend.acquire(1000, p);
       }},
      {"cuMemFree", [](scene& s) { return s.backend.release(s.memory, 1000); }},
      {"cuMemGetInfo",
       [](scene& s) {
         (void)s.backend.memory();
         return pagesift::status{};
       }},
      {"cuStreamIsCapturing", [](scene& s) { return s.backend.inspect(s.stream).result; }},
      {"cuStreamGetId", [](scene& s) { return s.backend.inspect(s.stream).result; }},
      {"cuEventCreate",
       [](scene& s) {
         cudaEvent_t event = nullptr;
         return s.backend.create_event(event);
       }},
      {"cuEventRecord", [](scene& s) { return s.backend.record(s.event, s.stream); }},
      {"cuStreamWaitEvent", [](scene& s) { return s.backend.wait(s.stream, s.event); }},
      {"cuEventQuery", [](scene& s) { return s.backend.query(s.event); }},
      {"cuEventSynchronize", [](scene& s) { return s.backend.synchronize(s.event); }},
      {"cuMemcpyHtoDAsync",
       [](scene& s) { return s.backend.copy_to_device(s.memory, &s.word, 4, s.stream); }},
      {"cuMemcpyDtoHAsync",
       [](scene& s) { return s.backend.copy_to_host(&s.word, s.memory, 4, s.stream); }},
      {"cuEventDestroy", [](scene& s) { return s.backend.destroy_event(s.event); }},
  };
}

/// `backend_calls` and the one that ends captures.
inline std::vector<backend_call> backend_calls_and_fence() {
  auto calls = backend_calls();
  calls.push_back({"cuCtxSynchronize", [](backend_scene& s) { return s.backend.fence(); }});
  return calls;
}
