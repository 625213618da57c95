// Virtual memory of a real device: what kernels find behind mapped addresses.
#include "device_work.hpp"

#include <pagesift/backend/cuda.hpp>
#include <pagesift/core/bytes.hpp>

#include <array>

using pagesift::cuda_backend;
using pagesift::mapping_options;

namespace {

constexpr std::size_t page = 2 * pagesift::mebibyte;

/// Sixteen reserved pages.
struct bench {
  bench() {
    gpu::prepare();
    REQUIRE(backend.reserve(16 * page, base).ok());
  }
  ~bench() {
    CHECK(backend.unreserve(base, 16 * page).ok());
    CHECK(cudaPeekAtLastError() == cudaSuccess);
  }
  bench(const bench&) = delete;
  bench& operator=(const bench&) = delete;

  [[nodiscard]] void* at(std::size_t pages) const {
    return static_cast<char*>(base) + pages * page;
  }

  [[nodiscard]] cuda_backend::physical_type created(std::size_t pages,
                                                    const mapping_options& options = {}) const {
    cuda_backend::physical_type h{};
    REQUIRE(backend.create(pages * page, options, h).ok());
    return h;
  }

  void map(std::size_t at_page, std::size_t pages, cuda_backend::physical_type h,
           const mapping_options& options = {}) const {
    REQUIRE(backend.map(at(at_page), pages * page, h, options).ok());
  }

  cuda_backend backend = cuda_backend::open(0);
  gpu::stream stream;
  void* base = nullptr;
};

}  // namespace

TEST_CASE("what a kernel wrote is there where the memory is mapped next") {
  bench t;
  const auto h = t.created(4);
  t.map(0, 4, h);
  gpu::fill(t.at(0), 4 * page, 0x1234, t.stream);
  t.stream.synchronize();
  REQUIRE(t.backend.unmap(t.at(0), 4 * page).ok());
  t.map(7, 4, h);
  gpu::check(t.at(7), 4 * page, 0x1234, t.stream);
  t.stream.synchronize();
  CHECK_FALSE(gpu::mismatch());
  CHECK(t.backend.unmap(t.at(7), 4 * page).ok());
  CHECK(t.backend.destroy(h).ok());
}

TEST_CASE("a kernel writes over pieces side by side, and each keeps its part in another order") {
  bench t;
  std::array<cuda_backend::physical_type, 8> pieces{};
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    pieces[i] = t.created(1);
    t.map(i, 1, pieces[i]);
  }
  gpu::fill(t.at(0), 8 * page, 77, t.stream);
  gpu::check(t.at(0), 8 * page, 77, t.stream);
  for (unsigned i = 0; i < pieces.size(); ++i) {
    gpu::fill(t.at(i), page, i, t.stream);
  }
  t.stream.synchronize();
  REQUIRE(t.backend.unmap(t.at(0), 8 * page).ok());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    t.map(15 - i, 1, pieces[i]);
  }
  for (unsigned i = 0; i < pieces.size(); ++i) {
    gpu::check(t.at(15 - i), page, i, t.stream);
  }
  t.stream.synchronize();
  CHECK_FALSE(gpu::mismatch());
  CHECK(t.backend.unmap(t.at(8), 8 * page).ok());
  for (const auto h : pieces) {
    CHECK(t.backend.destroy(h).ok());
  }
}

TEST_CASE("memory that was destroyed serves kernels until it is unmapped") {
  bench t;
  const auto h = t.created(2);
  t.map(0, 2, h);
  REQUIRE(t.backend.destroy(h).ok());
  gpu::fill(t.at(0), 2 * page, 5, t.stream);
  gpu::check(t.at(0), 2 * page, 5, t.stream);
  t.stream.synchronize();
  CHECK_FALSE(gpu::mismatch());
  CHECK(t.backend.unmap(t.at(0), 2 * page).ok());
}

TEST_CASE("memory comes back once it is destroyed and unmapped") {
  gpu::prepare();
  const auto backend = cuda_backend::open(0);
  const std::size_t bytes = backend.memory().free_bytes / 2 / page * page;
  void* p = nullptr;
  REQUIRE(backend.reserve(bytes, p).ok());
  for (int round = 0; round < 6; ++round) {
    cuda_backend::physical_type h{};
    REQUIRE(backend.create(bytes, {}, h).ok());
    REQUIRE(backend.map(p, bytes, h, {}).ok());
    CHECK(backend.unmap(p, bytes).ok());
    CHECK(backend.destroy(h).ok());
  }
  CHECK(backend.unreserve(p, bytes).ok());
}

TEST_CASE("mapping and unmapping wait for no work of the device") {
  bench t;
  gpu::gate gate;
  gate.close(t.stream);
  CHECK(t.backend.can_map({}).ok());
  const auto h = t.created(4);
  t.map(0, 4, h);
  CHECK(t.backend.unmap(t.at(0), 4 * page).ok());
  CHECK(t.backend.destroy(h).ok());
  CHECK_FALSE(gpu::idle(t.stream));
  gate.open();
  t.stream.synchronize();
  CHECK_FALSE(gate.expired());
}

TEST_CASE("wrong use of virtual memory is a failure, and what was mapped still is") {
  bench t;
  const auto mapped = t.created(2);
  const auto spare = t.created(1);
  t.map(0, 2, mapped);
  CHECK(t.backend.map(t.at(1), page, spare, {}).failed());
  CHECK(t.backend.map(t.at(2), 2 * page, spare, {}).failed());
  CHECK(t.backend.unmap(t.at(0), page).failed());
  CHECK(t.backend.unreserve(t.at(0), 8 * page).failed());
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  gpu::fill(t.at(0), 2 * page, 9, t.stream);
  gpu::check(t.at(0), 2 * page, 9, t.stream);
  t.stream.synchronize();
  CHECK_FALSE(gpu::mismatch());
  CHECK(t.backend.unmap(t.at(0), 2 * page).ok());
  CHECK(t.backend.destroy(mapped).ok());
  CHECK(t.backend.destroy(spare).ok());
}

TEST_CASE("memory for RDMA serves kernels as any other, where the device has it") {
  bench t;
  const mapping_options rdma{true, {}};
  const pagesift::status possible = t.backend.can_map(rdma);
  if (!possible.ok()) {
    MESSAGE("not tried: ", t.backend.describe(possible.code));
    return;
  }
  const auto h = t.created(1, rdma);
  t.map(0, 1, h, rdma);
  gpu::fill(t.at(0), page, 3, t.stream);
  gpu::check(t.at(0), page, 3, t.stream);
  t.stream.synchronize();
  CHECK_FALSE(gpu::mismatch());
  CHECK(t.backend.unmap(t.at(0), page).ok());
  CHECK(t.backend.destroy(h).ok());
}

TEST_CASE("a peer writes to mapped memory, where there is one") {
  bench t;
  const mapping_options shared{false, {1}};
  const pagesift::status possible = t.backend.can_map(shared);
  if (!possible.ok()) {
    MESSAGE("not tried: ", t.backend.describe(possible.code));
    return;
  }
  const auto h = t.created(1, shared);
  t.map(0, 1, h, shared);
  gpu::require(cudaSetDevice(1));
  {
    gpu::stream of_the_peer;
    gpu::fill(t.at(0), page, 11, of_the_peer);
    of_the_peer.synchronize();
  }
  gpu::require(cudaSetDevice(0));
  gpu::check(t.at(0), page, 11, t.stream);
  t.stream.synchronize();
  CHECK_FALSE(gpu::mismatch());
  CHECK(t.backend.unmap(t.at(0), page).ok());
  CHECK(t.backend.destroy(h).ok());
}
