// The wait for all work of a device, where memory is short.
#include "fake_cuda.hpp"

#include <pagesift/backend/cuda.hpp>
#include <pagesift/core/bytes.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace {

/// A device whose last bytes are taken by a fence's allocation.
struct full_device {
  pagesift::cuda_backend backend = pagesift::cuda_backend::open(0);
  void* all = nullptr;

  full_device() { REQUIRE(backend.acquire(backend.memory().free_bytes, all).ok()); }
};

}  // namespace

TEST_CASE("two threads that wait for a full device at once both wait") {
  fake_cuda::reset(1, pagesift::mebibyte);
  full_device device;
  pagesift::status second;
  std::atomic<bool> begun{false};
  std::thread other;
  fake_cuda::on_call("cuMemFree", [&] {
    fake_cuda::on_call("cuMemFree", {});
    other = std::thread{[&] {
      begun = true;
      second = device.backend.fence();
    }};
    while (!begun) {
      std::this_thread::yield();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{50});  // it comes to where it must wait
  });
  CHECK(device.backend.fence().ok());
  other.join();
  CHECK(second.ok());
  CHECK(fake_cuda::count("cuMemFree") == 2);
}

TEST_CASE("a fence without an allocation takes one, or says that memory is short") {
  fake_cuda::reset(1, pagesift::mebibyte);
  full_device device;
  fake_cuda::fail("cuMemAlloc", 2, 1, 2);
  CHECK(device.backend.fence().ok());  // its allocation was there; another cannot be had
  CHECK(device.backend.fence().shortage());
  CHECK(device.backend.fence().ok());
}
