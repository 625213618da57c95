// A driver from before virtual memory serves everything else.
#include "backend_calls.hpp"

TEST_CASE("a driver without virtual memory maps nothing and does the rest") {
  fake_cuda::reset();
  (void)pagesift::cuda_driver::get();
  // The two ways in which a look-up says no: the first of them leaves an error where it is made.
  fake_cuda::fail("cudaGetDriverEntryPoint", cudaErrorInvalidValue);
  fake_cuda::remove_entry_point("cuMemCreate");
  const auto backend = pagesift::cuda_backend::open(0);
  CHECK(cudaPeekAtLastError() == cudaSuccess);

  const pagesift::status possible = backend.can_map({});
  CHECK(possible.failed());
  CHECK(possible.code == cudaErrorCallRequiresNewerDriver);
  CHECK(std::string{possible.call} == "cuMemCreate");
  CHECK_THROWS_AS(pagesift::require_mappable(backend, {}), pagesift::backend_error);

  void* p = nullptr;
  CUmemGenericAllocationHandle h = 0;
  CHECK(backend.reserve(2 * pagesift::mebibyte, p).failed());
  CHECK(backend.create(2 * pagesift::mebibyte, {}, h).failed());
  CHECK(backend.map(p, 2 * pagesift::mebibyte, h, {}).failed());
  CHECK(backend.unmap(p, 2 * pagesift::mebibyte).failed());
  CHECK(backend.destroy(h).failed());
  CHECK(backend.unreserve(p, 2 * pagesift::mebibyte).failed());
  CHECK(p == nullptr);
  CHECK(h == 0);

  CHECK(backend.acquire(1000, p).ok());
  CHECK(backend.release(p, 1000).ok());
}
