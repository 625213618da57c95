// A device that breaks under the pool. Alone in its program, since nothing works afterwards.
#include "late_write.hpp"

using pagesift::cuda_pool;
using pagesift::mebibyte;

TEST_CASE("after a trap on one stream a request on another reports it and gets no block") {
  gpu::prepare();
  cuda_pool pool{gpu::eager_seals()};
  gpu::stream first;
  gpu::stream second;
  gpu::gate gate;
  pool.deallocate(pool.allocate(1, second), 1, second);
  void* const p = pool.allocate(4 * mebibyte, first);
  gate.close(first);
  gpu::trap(first);
  pool.deallocate(p, 4 * mebibyte, first);
  const pagesift::pool_stats before = pool.stats();
  gate.open();
  const cudaError_t fault = cudaStreamSynchronize(first);
  REQUIRE(fault != cudaSuccess);
  try {
    (void)pool.allocate(4 * mebibyte, second);
    FAIL_CHECK("nothing was thrown");
  } catch (const pagesift::backend_error& error) {
    CHECK(error.code() == fault);
  }
  CHECK(pool.stats().held == before.held);
  CHECK(pool.stats().in_use == before.in_use);
  CHECK(pool.stats().backend_releases == before.backend_releases);
}
