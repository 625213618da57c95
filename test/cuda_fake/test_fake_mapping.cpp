// Virtual memory of the fake: where CUDA is strict it must be, or no test on it could go red.
#include "fake_cuda.hpp"

#include <pagesift/backend/cuda_mapping_functions.hpp>
#include <pagesift/core/bytes.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <unistd.h>

namespace {

constexpr std::size_t page = 2 * pagesift::mebibyte;

/// Whether the host can read there.
bool readable(CUdeviceptr p) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const bool copied = write(ends[1], reinterpret_cast<const void*>(p), 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return copied;
}

unsigned& word(CUdeviceptr p) { return *reinterpret_cast<unsigned*>(p); }

/// Four reserved pages and a piece of two.
struct bench {
  bench() {
    fake_cuda::reset(2, 8 * page);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    cuda = pagesift::cuda_mapping_functions::load();
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    REQUIRE(cuda.address_reserve(&base, 4 * page, page, 0, 0) == CUDA_SUCCESS);
    REQUIRE(cuda.create(&two, 2 * page, &wanted, 0) == CUDA_SUCCESS);
  }

  CUresult map(std::size_t at_page) const {
    return cuda.map(base + at_page * page, 2 * page, 0, two, 0);
  }

  CUresult open(std::size_t at_page, int device = 0) const {
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return cuda.set_access(base + at_page * page, 2 * page, &access, 1);
  }

  pagesift::cuda_mapping_functions cuda;
  CUmemAllocationProp wanted{};
  CUdeviceptr base = 0;
  CUmemGenericAllocationHandle two = 0;
};

}  // namespace

TEST_CASE("addresses fault until memory is mapped there and access given, and again afterwards") {
  bench t;
  CHECK(t.base % page == 0);
  CHECK_FALSE(readable(t.base));
  REQUIRE(t.map(0) == CUDA_SUCCESS);
  CHECK_FALSE(readable(t.base));
  REQUIRE(t.open(0) == CUDA_SUCCESS);
  CHECK(readable(t.base));
  CHECK(readable(t.base + 2 * page - 1));
  CHECK_FALSE(readable(t.base + 2 * page));
  REQUIRE(t.cuda.unmap(t.base, 2 * page) == CUDA_SUCCESS);
  CHECK_FALSE(readable(t.base));
}

TEST_CASE("a piece keeps what is in it while it is mapped elsewhere") {
  bench t;
  REQUIRE(t.map(0) == CUDA_SUCCESS);
  REQUIRE(t.open(0) == CUDA_SUCCESS);
  word(t.base + page) = 123;
  REQUIRE(t.cuda.unmap(t.base, 2 * page) == CUDA_SUCCESS);
  REQUIRE(t.map(1) == CUDA_SUCCESS);
  REQUIRE(t.open(1) == CUDA_SUCCESS);
  CHECK(word(t.base + 2 * page) == 123);
}

TEST_CASE("memory is used until its piece is released and mapped nowhere") {
  bench t;
  CHECK(fake_cuda::used_bytes(0) == 2 * page);
  REQUIRE(t.map(0) == CUDA_SUCCESS);
  CHECK(t.cuda.release(t.two) == CUDA_SUCCESS);
  CHECK(fake_cuda::used_bytes(0) == 2 * page);
  CHECK(t.cuda.unmap(t.base, 2 * page) == CUDA_SUCCESS);
  CHECK(fake_cuda::used_bytes(0) == 0);
  CHECK(fake_cuda::live_pieces() == 0);
  CHECK(fake_cuda::misuse().empty());
}

TEST_CASE("created memory comes from the same budget as cudaMalloc's") {
  bench t;
  CUmemGenericAllocationHandle h = 0;
  CHECK(t.cuda.create(&h, 7 * page, &t.wanted, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  void* p = nullptr;
  CHECK(cudaMalloc(&p, 7 * page) == cudaErrorMemoryAllocation);
  CHECK(t.cuda.create(&h, 6 * page, &t.wanted, 0) == CUDA_SUCCESS);
}

TEST_CASE("wrong use of virtual memory is an invalid value") {
  bench t;
  REQUIRE(t.map(0) == CUDA_SUCCESS);
  CHECK(t.map(1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(t.map(3) == CUDA_ERROR_INVALID_VALUE);
  CHECK(t.cuda.map(t.base + 2 * page, page, 0, t.two, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(t.cuda.map(t.base + 2 * page, 2 * page, page, t.two, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(t.cuda.unmap(t.base, page) == CUDA_ERROR_INVALID_VALUE);
  CHECK(t.cuda.unmap(t.base + page, page) == CUDA_ERROR_INVALID_VALUE);
  CHECK(t.cuda.unmap(t.base, 3 * page) == CUDA_ERROR_INVALID_VALUE);
  CHECK(t.cuda.address_free(t.base, 4 * page) == CUDA_ERROR_INVALID_VALUE);
  CHECK(t.cuda.address_free(t.base, 2 * page) == CUDA_ERROR_INVALID_VALUE);
  CHECK(t.open(1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(t.open(0, 2) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(fake_cuda::misuse().empty());
}

TEST_CASE("a handle that was released is named no more") {
  bench t;
  REQUIRE(t.cuda.release(t.two) == CUDA_SUCCESS);
  SUBCASE("release") { CHECK(t.cuda.release(t.two) == CUDA_ERROR_INVALID_VALUE); }
  SUBCASE("map") { CHECK(t.map(0) == CUDA_ERROR_INVALID_VALUE); }
  CHECK(fake_cuda::misuse().size() == 1);
}
