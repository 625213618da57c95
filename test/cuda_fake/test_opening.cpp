// Opening a device, and machines on which that cannot work.
#include "fake_cuda.hpp"

#include <pagesift/backend/cuda.hpp>

#include <doctest/doctest.h>

#include <string>

namespace {

template <typename Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("a driver that lacks a function is too old, and the error says which and since when") {
  fake_cuda::reset();
  fake_cuda::remove_entry_point("cuStreamGetId");
  CHECK_THROWS_AS((void)pagesift::cuda_driver::load(), pagesift::backend_error);
  CHECK(
      message_of([] { (void)pagesift::cuda_driver::load(); }) ==
      "pagesift: looking up cuStreamGetId failed with code 36 (the CUDA driver is too old to have "
      "it: it came with CUDA 12.0)");
}

TEST_CASE("without a driver the error has CUDA's name and text") {
  fake_cuda::reset();
  fake_cuda::refuse_runtime(cudaErrorInsufficientDriver);
  CHECK(message_of([] { (void)pagesift::cuda_driver::load(); }) ==
        "pagesift: cudaGetDriverEntryPoint failed with code 35 (cudaErrorInsufficientDriver: CUDA "
        "driver version is insufficient for CUDA runtime version)");
}

TEST_CASE("a driver that cannot start says why") {
  fake_cuda::reset();
  fake_cuda::fail("cuInit", cudaErrorNoDevice);
  CHECK(message_of([] { (void)pagesift::cuda_driver::load(); }) ==
        "pagesift: cuInit failed with code 100 (cudaErrorNoDevice: no CUDA-capable device is "
        "detected)");
}

TEST_CASE("looking the driver up leaves the last error alone, and works once there is a driver") {
  // CTest runs this in a process of its own, where nothing has been looked up yet.
  fake_cuda::reset();
  REQUIRE(cudaSetDevice(99) == cudaErrorInvalidDevice);
  fake_cuda::refuse_runtime(cudaErrorInsufficientDriver);
  try {
    (void)pagesift::cuda_driver::get();
  } catch (const pagesift::backend_error& error) {
    CHECK(error.code() == cudaErrorInsufficientDriver);
  }
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice);
  fake_cuda::refuse_runtime(0);
  CHECK_NOTHROW((void)pagesift::cuda_driver::get());
}

TEST_CASE("a machine without a device cannot be opened") {
  fake_cuda::reset(0);
  for (const int device : {-1, 0}) {
    CHECK(message_of([&] { (void)pagesift::cuda_backend::open(device); }) ==
          "pagesift: cuDeviceGetCount failed with code 100 (cudaErrorNoDevice: no CUDA-capable "
          "device is detected)");
  }
  CHECK_THROWS_AS((void)pagesift::cuda_backend::current_device(), pagesift::backend_error);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("a device that is not there is an argument that cannot be meant") {
  fake_cuda::reset(2);
  for (const int device : {-2, 2}) {
    CHECK_THROWS_AS((void)pagesift::cuda_backend::open(device), pagesift::invalid_argument);
  }
  CHECK(message_of([] { (void)pagesift::cuda_backend::open(2); }) ==
        "pagesift: there is no CUDA device 2: there are 2, counted from 0");
}

TEST_CASE("a device that cannot be used says why") {
  fake_cuda::reset(2);
  fake_cuda::fail("cuDevicePrimaryCtxRetain", cudaErrorMemoryAllocation);
  CHECK_THROWS_AS((void)pagesift::cuda_backend::open(1), pagesift::backend_error);
  fake_cuda::break_device(1, cudaErrorIllegalAddress);
  CHECK_THROWS_AS((void)pagesift::cuda_backend::open(1), pagesift::backend_error);
}
