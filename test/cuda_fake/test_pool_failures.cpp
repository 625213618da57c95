// What a pool makes of CUDA's failures.
#include "pool_scene.hpp"

#include <stdexcept>
#include <utility>

namespace {

/// A block freed on the first stream behind work, sealed, and the second stream known.
void leave_pending_block(pool_scene& scene, std::size_t bytes) {
  void* const p = scene.pool.allocate(bytes, scene.first);
  scene.pool.deallocate(scene.pool.allocate(1, scene.second), 1, scene.second);
  submit_work(scene.first);
  scene.pool.deallocate(p, bytes, scene.first);
}

/// The code of the backend_error that an allocation on the second stream throws, else -1.
int failure_of_request(pool_scene& scene, std::size_t bytes) {
  try {
    (void)scene.pool.allocate(bytes, scene.second);
  } catch (const pagesift::backend_error& error) {
    return error.code();
  } catch (const std::exception& error) {
    FAIL_CHECK(error.what());
  }
  return -1;
}

}  // namespace

TEST_CASE("after a fault on the device a request reports it and gets no block") {
  for (const int code : {cudaErrorLaunchFailure, cudaErrorIllegalAddress}) {
    CAPTURE(code);
    pool_scene scene{pagesift::gibibyte, eager_seals()};
    leave_pending_block(scene, 4 * mebibyte);
    const std::size_t allocations = fake_cuda::live_allocations();
    const std::size_t frees = fake_cuda::count("cuMemFree");
    const pagesift::pool_stats before = scene.pool.stats();
    fake_cuda::break_device(0, code);
    CHECK(failure_of_request(scene, 4 * mebibyte) == code);
    CHECK(fake_cuda::live_allocations() == allocations);
    CHECK(fake_cuda::count("cuMemFree") == frees);
    CHECK(scene.pool.stats().in_use == before.in_use);
    fake_cuda::break_device(0, 0);
  }
}

TEST_CASE("a query that fails is not completion: the request reports it and gets no block") {
  for (const int code : {cudaErrorLaunchFailure, cudaErrorIllegalAddress}) {
    CAPTURE(code);
    pool_scene scene{pagesift::gibibyte, eager_seals()};
    leave_pending_block(scene, 4 * mebibyte);
    const std::size_t in_use = scene.pool.stats().in_use;
    fake_cuda::fail("cuEventQuery", code);
    CHECK(failure_of_request(scene, 4 * mebibyte) == code);
    CHECK(scene.pool.stats().in_use == in_use);
  }
}

TEST_CASE("a failure to allocate that is not shortage is reported as it is and trims nothing") {
  for (const bool mapped : {false, true}) {
    CAPTURE(mapped);
    pagesift::pool_options options;
    options.backing = mapped ? pagesift::backing::virtual_memory : pagesift::backing::plain;
    const char* const call = mapped ? "cuMemCreate" : "cuMemAlloc";
    pool_scene scene{pagesift::gibibyte, options};
    leave_pending_block(scene, 4 * mebibyte);
    fake_cuda::clear_log();
    fake_cuda::fail(call, cudaErrorIllegalAddress);
    CHECK(failure_of_request(scene, 64 * mebibyte) == cudaErrorIllegalAddress);
    CHECK(fake_cuda::count(call) == 1);
    CHECK(fake_cuda::count(mapped ? "cuMemRelease" : "cuMemFree") == 0);
  }
}

TEST_CASE("a request that needs memory still in use behind a full device works at the first call") {
  pool_scene scene{64 * mebibyte};
  leave_pending_block(scene, 56 * mebibyte);
  void* const p = scene.pool.allocate(56 * mebibyte, scene.second);
  fake_cuda::complete(scene.second);
  CHECK_FALSE(fake_cuda::pending(scene.first));
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  scene.pool.deallocate(p, 56 * mebibyte, scene.second);
}

TEST_CASE("a larger request waits for smaller blocks still in use behind a full device") {
  pool_scene scene{64 * mebibyte};
  leave_pending_block(scene, 28 * mebibyte);
  leave_pending_block(scene, 20 * mebibyte);
  void* const p = scene.pool.allocate(56 * mebibyte, scene.second);
  CHECK_FALSE(fake_cuda::pending(scene.first));
  scene.pool.deallocate(p, 56 * mebibyte, scene.second);
}

TEST_CASE("looking for memory that is still in use leaves no last error") {
  pool_scene scene{pagesift::gibibyte, eager_seals()};
  leave_pending_block(scene, 4 * mebibyte);
  fake_cuda::clear_log();
  void* const p = scene.pool.allocate(4 * mebibyte, scene.second);
  CHECK(fake_cuda::count("cuEventQuery") >= 1);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  scene.pool.deallocate(p, 4 * mebibyte, scene.second);
}

TEST_CASE("a shortage leaves the last error as it was, met or not") {
  for (const auto memory : {pagesift::backing::plain, pagesift::backing::virtual_memory}) {
    for (const cudaError_t before : {cudaSuccess, cudaErrorInvalidDevice}) {
      CAPTURE(before);
      pagesift::pool_options options;
      options.backing = memory;
      pool_scene scene{64 * mebibyte, options};
      if (before != cudaSuccess) {
        REQUIRE(cudaSetDevice(99) == before);
      }
      void* const p = scene.pool.allocate(40 * mebibyte, scene.first);
      CHECK_THROWS_AS((void)scene.pool.allocate(40 * mebibyte, scene.first),
                      pagesift::out_of_memory);
      CHECK(cudaPeekAtLastError() == before);
      scene.pool.deallocate(p, 40 * mebibyte, scene.first);
      void* const q = scene.pool.allocate(56 * mebibyte, scene.first);  // works after a release
      CHECK(cudaPeekAtLastError() == before);
      scene.pool.deallocate(q, 56 * mebibyte, scene.first);
    }
  }
}

TEST_CASE("a pool of plain memory has all of it from cuMemAlloc, and maps none") {
  pagesift::pool_options options;
  options.backing = pagesift::backing::plain;
  pool_scene scene{64 * mebibyte, options};
  fake_cuda::clear_log();
  for (const std::size_t bytes : {std::size_t{256}, 3 * mebibyte, 20 * mebibyte, 56 * mebibyte}) {
    void* const p = scene.pool.allocate(bytes, scene.first);
    scene.pool.deallocate(p, bytes, scene.first);
  }
  CHECK_THROWS_AS((void)scene.pool.allocate(64 * mebibyte, scene.first), pagesift::out_of_memory);
  CHECK(fake_cuda::count("cuMemAlloc") > 0);
  for (const char* const call : {"cuMemAddressReserve", "cuMemCreate", "cuMemMap"}) {
    CHECK(fake_cuda::count(call) == 0);
  }
}

TEST_CASE("the numbers of an out_of_memory are the device's") {
  pool_scene scene{64 * mebibyte};
  try {
    (void)scene.pool.allocate(pagesift::gibibyte, scene.first);
    FAIL_CHECK("nothing was thrown");
  } catch (const pagesift::out_of_memory& error) {
    CHECK(error.report().requested == pagesift::gibibyte);
    CHECK(error.report().total_bytes == 64 * mebibyte);
    CHECK(error.report().free_bytes == 64 * mebibyte);
  }
}

TEST_CASE("a free whose event cannot be recorded does not disturb an exception on its way") {
  static_assert(noexcept(std::declval<pagesift::cuda_pool&>().deallocate(nullptr, 0, nullptr)));
  pool_scene scene{pagesift::gibibyte, eager_seals()};
  scene.pool.deallocate(scene.pool.allocate(1, scene.second), 1, scene.second);
  struct user {
    pool_scene& scene;
    void* p = scene.pool.allocate(mebibyte, scene.first);
    ~user() { scene.pool.deallocate(p, mebibyte, scene.first); }
  };
  for (const char* call : {"cuEventRecord", "cuEventCreate", "cuStreamIsCapturing"}) {
    CAPTURE(call);
    try {
      const user u{scene};
      fake_cuda::fail(call, cudaErrorIllegalAddress);
      throw std::runtime_error{"the first"};
    } catch (const std::runtime_error& error) {
      CHECK(std::string{error.what()} == "the first");
    }
    CHECK(scene.pool.stats().in_use == 0);
  }
}

TEST_CASE("a pool that cannot give its memory back is destroyed all the same") {
  {
    pool_scene scene;
    leave_pending_block(scene, mebibyte);
    fake_cuda::break_device(0, cudaErrorIllegalAddress);
  }
  CHECK(fake_cuda::misuse().empty());
}

TEST_CASE("ranges that do not start at a page still give aligned blocks") {
  for (const std::size_t alignment : {std::size_t{256}, std::size_t{4096}, mebibyte}) {
    CAPTURE(alignment);
    pool_scene scene;
    fake_cuda::set_alignment(alignment);
    void* const p = scene.pool.allocate(3 * mebibyte, 2 * mebibyte, scene.first);
    CHECK(reinterpret_cast<std::uintptr_t>(p) % (2 * mebibyte) == 0);
    scene.pool.deallocate(p, 3 * mebibyte, scene.first);
  }
}
