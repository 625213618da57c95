// CUB's own algorithms, on the host's side: kernels do nothing here.
#include "fake_cuda.hpp"

#include <pagesift/adapters/cub.hpp>

#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <doctest/doctest.h>

#include <vector>

namespace {

struct less {
  __host__ __device__ bool operator()(int a, int b) const { return a < b; }
};

TEST_CASE("a reduction runs on its stream, and a second one takes nothing from the device") {
  fake_cuda::reset();
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  pagesift::device_pool pool;
  std::vector<int> in(100'000, 1);
  int out = 0;
  const auto sum = [&](void* temp, std::size_t& bytes) {
    return cub::DeviceReduce::Sum(temp, bytes, in.data(), &out, 100'000, stream);
  };
  CHECK(pagesift::temp_storage(pool, stream, sum) == cudaSuccess);
  CHECK(fake_cuda::count("cudaLaunchKernel") > 0);
  CHECK(fake_cuda::pending(stream));
  const std::uint64_t taken = pool.stats().backend_allocations;
  CHECK(pagesift::temp_storage(pool, stream, sum) == cudaSuccess);
  CHECK(pool.stats().backend_allocations == taken);
  CHECK(pool.stats().in_use == 0);
  CHECK(fake_cuda::count("cudaMalloc") == 0);
}

TEST_CASE("a launch that fails comes back as CUDA's error, and the memory is returned") {
  fake_cuda::reset();
  pagesift::device_pool pool;
  std::vector<int> in(1000, 1);
  int out = 0;
  fake_cuda::fail("cudaLaunchKernel", cudaErrorLaunchOutOfResources);
  const cudaError_t status =
      pagesift::temp_storage(pool, nullptr, [&](void* temp, std::size_t& bytes) {
        return cub::DeviceReduce::Sum(temp, bytes, in.data(), &out, 1000);
      });
  CHECK(status == cudaErrorLaunchOutOfResources);
  CHECK(pool.stats().in_use == 0);
}

TEST_CASE("an algorithm that needs 0 bytes is not taken for a query") {
  fake_cuda::reset();
  pagesift::device_pool pool;
  std::vector<int> keys(1, 1);
  void* temp_at_work = nullptr;
  const cudaError_t status =
      pagesift::temp_storage(pool, nullptr, [&](void* temp, std::size_t& bytes) {
        temp_at_work = temp;
        return cub::DeviceMergeSort::SortKeys(temp, bytes, keys.data(), 0, less{});
      });
  CHECK(status == cudaSuccess);
  CHECK(temp_at_work != nullptr);
  CHECK(pool.stats().in_use == 0);
}

}  // namespace
