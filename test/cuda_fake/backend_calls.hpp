// Every call of the CUDA backend, for tests of what all of them must keep.
#pragma once

#include "fake_cuda.hpp"

#include <pagesift/backend/cuda.hpp>
#include <pagesift/core/bytes.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

/// What a call works on: a stream and an event recorded on it, with work pending; reserved
/// addresses with one piece of memory mapped at the beginning, others with none, a second piece.
struct backend_scene {
  pagesift::cuda_backend backend = pagesift::cuda_backend::open(0);
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  void* memory = nullptr;
  unsigned word = 0;  ///< memory of the host
  void* reserved = nullptr;
  void* empty = nullptr;
  CUmemGenericAllocationHandle mapped = 0;
  CUmemGenericAllocationHandle spare = 0;

  static constexpr std::size_t page = 2 * pagesift::mebibyte;

  /// Device 0 must be current.
  backend_scene() {
    REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
    REQUIRE(backend.create_event(event).ok());
    REQUIRE(backend.record(event, stream).ok());
    REQUIRE(backend.acquire(1000, memory).ok());
    REQUIRE(backend.reserve(4 * page, reserved).ok());
    REQUIRE(backend.reserve(page, empty).ok());
    REQUIRE(backend.create(page, {}, mapped).ok());
    REQUIRE(backend.create(page, {}, spare).ok());
    REQUIRE(backend.map(reserved, page, mapped, {}).ok());
  }

  [[nodiscard]] void* at(std::size_t pages) const {
    return static_cast<char*>(reserved) + pages * page;
  }
};

struct backend_call {
  std::string driver_function;  ///< what the backend calls for it
  std::function<pagesift::status(backend_scene&)> make;
};

/// The calls of virtual memory.
inline std::vector<backend_call> mapping_calls() {
  using scene = backend_scene;
  const auto can_map = [](scene& s) { return s.backend.can_map({false, {1}}); };
  return {
      {"cuDeviceGetAttribute", can_map},
      {"cuDeviceCanAccessPeer", can_map},
      {"cuMemGetAllocationGranularity", can_map},
      {"cuMemAddressReserve",
       [](scene& s) {
         void* p = nullptr;
         return s.backend.reserve(scene::page, p);
       }},
      {"cuMemAddressFree", [](scene& s) { return s.backend.unreserve(s.empty, scene::page); }},
      {"cuMemCreate",
       [](scene& s) {
         CUmemGenericAllocationHandle h = 0;
         return s.backend.create(scene::page, {}, h);
       }},
      {"cuMemRelease", [](scene& s) { return s.backend.destroy(s.spare); }},
      {"cuMemMap", [](scene& s) { return s.backend.map(s.at(2), scene::page, s.spare, {}); }},
      {"cuMemSetAccess", [](scene& s) { return s.backend.map(s.at(2), scene::page, s.spare, {}); }},
      {"cuMemUnmap", [](scene& s) { return s.backend.unmap(s.reserved, scene::page); }},
  };
}

/// All calls; those that consume something make it themselves.
inline std::vector<backend_call> backend_calls() {
  using scene = backend_scene;
  std::vector<backend_call> calls{
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
      {"cuMemsetD8Async", [](scene& s) { return s.backend.fill(s.memory, 1, 4, s.stream); }},
      {"cuMemFree", [](scene& s) { return s.backend.fence(); }},
      {"cuEventDestroy", [](scene& s) { return s.backend.destroy_event(s.event); }},
  };
  for (const backend_call& call : mapping_calls()) {
    calls.push_back(call);
  }
  return calls;
}
