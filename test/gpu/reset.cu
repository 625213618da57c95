// cudaDeviceReset while a pool lives.
#include "late_write.hpp"

using pagesift::cuda_pool;
using pagesift::mebibyte;

TEST_CASE("a device is not reset while a pool holds its context, and the pool's memory is good") {
  gpu::prepare();
  cuda_pool pool;
  void* const before = pool.allocate(40 * mebibyte, nullptr);
  gpu::fill(before, 40 * mebibyte, 1, nullptr);
  pool.deallocate(before, 40 * mebibyte, nullptr);
  const cudaError_t reset = cudaDeviceReset();
  CHECK(reset == cudaErrorNotPermitted);
  (void)cudaGetLastError();
  void* const after = pool.allocate(40 * mebibyte, nullptr);
  gpu::fill(after, 40 * mebibyte, 2, nullptr);
  gpu::check(after, 40 * mebibyte, 2, nullptr);
  gpu::require(cudaDeviceSynchronize());
  CHECK_FALSE(gpu::mismatch());
  pool.deallocate(after, 40 * mebibyte, nullptr);
}
