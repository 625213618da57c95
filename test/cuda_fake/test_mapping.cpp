// Virtual memory of the CUDA backend.
#include "backend_calls.hpp"

#include <set>

using pagesift::cuda_backend;
using pagesift::mapping_options;
using pagesift::status;

namespace {

constexpr std::size_t page = backend_scene::page;

const mapping_options with_peer{false, {1}};
const mapping_options with_rdma{true, {}};

/// Nothing is left of a call that failed.
void check_nothing_left() {
  CHECK(fake_cuda::live_pieces() == 0);
  CHECK(fake_cuda::reserved_bytes() == 0);
  CHECK(fake_cuda::used_bytes(0) == 0);
  CHECK(fake_cuda::misuse().empty());
}

void check_refused(const status& result, int code, const std::string& call) {
  CHECK(result.failed());
  CHECK(result.code == code);
  CHECK(result.call == call);
  check_nothing_left();
}

}  // namespace

TEST_CASE("whether memory can be mapped is tried for real, and nothing of it is left") {
  fake_cuda::reset();
  const auto backend = cuda_backend::open(0);
  CHECK(backend.can_map({}).ok());
  for (const char* call : {"cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess",
                           "cuMemUnmap", "cuMemRelease", "cuMemAddressFree"}) {
    CAPTURE(call);
    CHECK(fake_cuda::count(call) == 1);
  }
  check_nothing_left();
}

TEST_CASE("a step that fails says so, and what the steps before it made is gone") {
  for (const char* call :
       {"cuDeviceGetAttribute", "cuDeviceCanAccessPeer", "cuMemGetAllocationGranularity",
        "cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess"}) {
    CAPTURE(call);
    fake_cuda::reset();
    const auto backend = cuda_backend::open(0);
    fake_cuda::fail(call, 719);
    check_refused(backend.can_map(with_peer), 719, call);
  }
}

TEST_CASE("a step that cannot be undone is a failure too") {
  for (const char* call : {"cuMemUnmap", "cuMemRelease", "cuMemAddressFree"}) {
    CAPTURE(call);
    fake_cuda::reset();
    const auto backend = cuda_backend::open(0);
    fake_cuda::fail(call, 719);
    CHECK(backend.can_map({}).code == 719);
  }
}

TEST_CASE("a device without virtual memory, or with larger pages, cannot map") {
  fake_cuda::reset();
  const auto backend = cuda_backend::open(0);
  SUBCASE("without virtual memory") {
    fake_cuda::set_attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0);
    check_refused(backend.can_map({}), cudaErrorNotSupported, "cuDeviceGetAttribute");
  }
  SUBCASE("with larger pages") {
    fake_cuda::set_granularity(2 * page);
    check_refused(backend.can_map({}), cudaErrorNotSupported, "cuMemGetAllocationGranularity");
  }
}

TEST_CASE("a device with smaller pages still maps in pages of 2 MiB") {
  fake_cuda::reset();
  const auto backend = cuda_backend::open(0);
  fake_cuda::set_granularity(64 * pagesift::kibibyte);
  CHECK(backend.can_map({}).ok());
  CHECK(backend.granule_bytes() == page);
  void* p = nullptr;
  CUmemGenericAllocationHandle h = 0;
  CHECK(backend.reserve(64 * pagesift::kibibyte, p).failed());
  CHECK(backend.create(page + 64 * pagesift::kibibyte, {}, h).failed());
  check_nothing_left();
}

TEST_CASE("RDMA is asked for where it is wanted, of the device and for the memory") {
  fake_cuda::reset();
  const auto backend = cuda_backend::open(0);
  CHECK(backend.can_map(with_rdma).ok());
  fake_cuda::set_attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0);
  check_refused(backend.can_map(with_rdma), cudaErrorNotSupported, "cuDeviceGetAttribute");
  CHECK(backend.can_map({}).ok());
  CUmemGenericAllocationHandle h = 0;
  CHECK(backend.create(page, with_rdma, h).code == cudaErrorNotSupported);
  CHECK(h == 0);
  CHECK(backend.create(page, {}, h).ok());
}

TEST_CASE("a peer must be another device that reaches this one") {
  fake_cuda::reset();
  const auto backend = cuda_backend::open(0);
  CHECK(backend.can_map(with_peer).ok());
  check_refused(backend.can_map({false, {1, 2}}), cudaErrorInvalidDevice, "cuDeviceCanAccessPeer");
  check_refused(backend.can_map({false, {0}}), cudaErrorPeerAccessUnsupported,
                "cuDeviceCanAccessPeer");
  fake_cuda::set_peer_access(false);
  check_refused(backend.can_map(with_peer), cudaErrorPeerAccessUnsupported,
                "cuDeviceCanAccessPeer");
}

TEST_CASE("mapped memory is the device's and its peers', no other's") {
  fake_cuda::reset(3);
  backend_scene s;
  CHECK(fake_cuda::access_to(s.reserved) == std::set<int>{0});
  REQUIRE(s.backend.map(s.at(2), page, s.spare, {false, {2}}).ok());
  CHECK(fake_cuda::access_to(s.at(2)) == std::set<int>{0, 2});
}

TEST_CASE("a mapping that cannot be used by all is undone") {
  for (const std::size_t nth : {std::size_t{1}, std::size_t{2}}) {
    CAPTURE(nth);
    fake_cuda::reset();
    backend_scene s;
    fake_cuda::fail("cuMemSetAccess", 719, nth);
    CHECK(s.backend.map(s.at(2), page, s.spare, with_peer).code == 719);
    CHECK(s.backend.map(s.at(2), page, s.spare, with_peer).ok());
  }
}

TEST_CASE("memory keeps what is in it where it is mapped next") {
  fake_cuda::reset();
  backend_scene s;
  s.word = 123;
  REQUIRE(s.backend.copy_to_device(s.at(0), &s.word, 4, s.stream).ok());
  REQUIRE(s.backend.unmap(s.at(0), page).ok());
  REQUIRE(s.backend.map(s.at(3), page, s.mapped, {}).ok());
  s.word = 0;
  REQUIRE(s.backend.copy_to_host(&s.word, s.at(3), 4, s.stream).ok());
  CHECK(s.word == 123);
}

TEST_CASE("more memory than the device has is a shortage without asking, less is asked for") {
  fake_cuda::reset(1, 4 * page);
  const auto backend = cuda_backend::open(0);
  CUmemGenericAllocationHandle h = 0;
  CHECK(backend.create(5 * page, {}, h).shortage());
  CHECK(fake_cuda::count("cuMemCreate") == 0);
  REQUIRE(backend.create(3 * page, {}, h).ok());
  CHECK(backend.create(2 * page, {}, h).shortage());
  CHECK(backend.memory().free_bytes == page);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("a full device can map nothing, and that is a shortage") {
  fake_cuda::reset(1, 4 * page);
  const auto backend = cuda_backend::open(0);
  void* p = nullptr;
  REQUIRE(backend.acquire(4 * page, p).ok());
  CHECK(backend.can_map({}).shortage());
  CHECK(fake_cuda::reserved_bytes() == 0);
}

TEST_CASE("wrong use of virtual memory fails and changes nothing") {
  fake_cuda::reset();
  backend_scene s;
  CHECK(s.backend.map(s.at(0), page, s.spare, {}).failed());
  CHECK(s.backend.map(s.at(4), page, s.spare, {}).failed());
  CHECK(s.backend.map(s.at(2), 2 * page, s.spare, {}).failed());
  CHECK(s.backend.unmap(s.at(0), 2 * page).failed());
  CHECK(s.backend.unmap(s.at(2), page).failed());
  CHECK(s.backend.unreserve(s.at(0), 4 * page).failed());
  CHECK(s.backend.unreserve(s.at(1), 3 * page).failed());
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(s.backend.unmap(s.at(0), page).ok());
  CHECK(s.backend.destroy(s.mapped).ok());
  CHECK(s.backend.destroy(s.spare).ok());
  CHECK(s.backend.unreserve(s.reserved, 4 * page).ok());
  CHECK(fake_cuda::misuse().empty());
}

TEST_CASE("mapped memory is made on the backend's device, whichever is current") {
  fake_cuda::reset();
  const auto backend = cuda_backend::open(1);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  CUmemGenericAllocationHandle h = 0;
  REQUIRE(backend.create(page, {}, h).ok());
  CHECK(fake_cuda::used_bytes(0) == 0);
  CHECK(fake_cuda::used_bytes(1) == page);
}
