// What every backend with virtual memory must do, beside conformance.hpp, for the same fixtures:
//
//   PAGESIFT_VIRTUAL_MEMORY_CONFORMANCE(fixture)
#pragma once

#include "conformance.hpp"

#include <pagesift/backend/virtual_memory.hpp>

namespace conformance {

using pagesift::mapping_options;

inline void* at(void* p, std::size_t bytes) { return static_cast<char*>(p) + bytes; }

/// Reserved addresses that are given back with their scope.
template <typename Backend>
class scoped_reservation {
 public:
  scoped_reservation(Backend& backend, std::size_t bytes) : backend_{backend}, bytes_{bytes} {
    REQUIRE(backend_.reserve(bytes_, p_).ok());
    REQUIRE(p_ != nullptr);
  }
  scoped_reservation(const scoped_reservation&) = delete;
  scoped_reservation& operator=(const scoped_reservation&) = delete;
  ~scoped_reservation() { CHECK(backend_.unreserve(p_, bytes_).ok()); }

  [[nodiscard]] void* get() const { return p_; }

 private:
  Backend& backend_;
  std::size_t bytes_;
  void* p_ = nullptr;
};

template <typename Backend>
typename Backend::physical_type created(Backend& backend, std::size_t bytes) {
  typename Backend::physical_type h{};
  REQUIRE(backend.create(bytes, mapping_options{}, h).ok());
  REQUIRE_FALSE(h == typename Backend::physical_type{});
  return h;
}

TEST_CASE_TEMPLATE_DEFINE("memory can be mapped, in granules of whole pages of 2 MiB", Fixture,
                          mapping_works) {
  Fixture fixture;
  CHECK(fixture.backend().can_map(mapping_options{}).ok());
  CHECK(fixture.backend().granule_bytes() != 0);
  CHECK(fixture.backend().granule_bytes() % (2 * mebibyte) == 0);
  CHECK_NOTHROW(pagesift::require_mappable(fixture.backend(), mapping_options{}));
}

TEST_CASE_TEMPLATE_DEFINE("a peer that is not there cannot reach memory, and the error names it",
                          Fixture, unknown_peers_are_refused) {
  Fixture fixture;
  const mapping_options options{false, {12345}};
  CHECK(fixture.backend().can_map(options).failed());
  try {
    pagesift::require_mappable(fixture.backend(), options);
    FAIL_CHECK("nothing was thrown");
  } catch (const pagesift::invalid_argument& error) {
    CHECK(std::string{error.what()}.find("device 12345 cannot be a peer") != std::string::npos);
  }
}

TEST_CASE_TEMPLATE_DEFINE("reserved addresses are aligned to 2 MiB, do not overlap and come back",
                          Fixture, reservations_are_aligned_and_distinct) {
  Fixture fixture;
  auto& backend = fixture.backend();
  std::vector<piece> reserved;
  for (const std::size_t bytes : {2 * mebibyte, 6 * mebibyte, 1024 * mebibyte, 2 * mebibyte}) {
    piece got{nullptr, bytes};
    REQUIRE(backend.reserve(bytes, got.p).ok());
    CHECK(reinterpret_cast<std::uintptr_t>(got.p) % (2 * mebibyte) == 0);
    for (const piece& other : reserved) {
      CHECK_FALSE(overlap(got, other));
    }
    reserved.push_back(got);
  }
  for (const piece& got : reserved) {
    CHECK(backend.unreserve(got.p, got.bytes).ok());
  }
}

TEST_CASE_TEMPLATE_DEFINE("a piece can be mapped, unmapped and mapped elsewhere", Fixture,
                          pieces_can_move) {
  Fixture fixture;
  auto& backend = fixture.backend();
  const std::size_t bytes = 4 * mebibyte;
  const scoped_reservation<typename Fixture::backend_type> reserved{backend, 8 * mebibyte};
  const auto h = created(backend, bytes);
  for (const std::size_t offset : {2 * mebibyte, std::size_t{0}, 4 * mebibyte}) {
    CHECK(backend.map(at(reserved.get(), offset), bytes, h, mapping_options{}).ok());
    CHECK(backend.unmap(at(reserved.get(), offset), bytes).ok());
  }
  CHECK(backend.destroy(h).ok());
}

TEST_CASE_TEMPLATE_DEFINE("a piece that was destroyed stays mapped until it is unmapped", Fixture,
                          destroyed_pieces_stay_mapped) {
  Fixture fixture;
  auto& backend = fixture.backend();
  const scoped_reservation<typename Fixture::backend_type> reserved{backend, 2 * mebibyte};
  for (int round = 0; round < 2; ++round) {
    const auto h = created(backend, 2 * mebibyte);
    REQUIRE(backend.map(reserved.get(), 2 * mebibyte, h, mapping_options{}).ok());
    CHECK(backend.destroy(h).ok());
    CHECK(backend.unmap(reserved.get(), 2 * mebibyte).ok());
  }
}

TEST_CASE_TEMPLATE_DEFINE("neighbouring mappings can be unmapped in one call", Fixture,
                          neighbours_are_unmapped_together) {
  Fixture fixture;
  auto& backend = fixture.backend();
  const scoped_reservation<typename Fixture::backend_type> reserved{backend, 8 * mebibyte};
  const auto first = created(backend, 2 * mebibyte);
  const auto second = created(backend, 4 * mebibyte);
  REQUIRE(backend.map(reserved.get(), 2 * mebibyte, first, mapping_options{}).ok());
  REQUIRE(
      backend.map(at(reserved.get(), 2 * mebibyte), 4 * mebibyte, second, mapping_options{}).ok());
  CHECK(backend.unmap(reserved.get(), 6 * mebibyte).ok());
  CHECK(backend.destroy(first).ok());
  CHECK(backend.destroy(second).ok());
}

TEST_CASE_TEMPLATE_DEFINE("a piece beyond all memory is a shortage and harms nothing", Fixture,
                          absurd_pieces_are_a_shortage) {
  Fixture fixture;
  auto& backend = fixture.backend();
  const std::size_t total = backend.memory().total_bytes / (2 * mebibyte) * (2 * mebibyte);
  constexpr std::size_t largest = std::numeric_limits<std::size_t>::max() - (2 * mebibyte - 1);
  for (const std::size_t bytes : {total + 2 * mebibyte, largest / 2 + mebibyte, largest}) {
    typename Fixture::backend_type::physical_type h{};
    CHECK(backend.create(bytes, mapping_options{}, h).shortage());
    CHECK(h == typename Fixture::backend_type::physical_type{});
  }
  void* p = nullptr;
  CHECK_FALSE(backend.reserve(largest, p).ok());
  CHECK(backend.destroy(created(backend, 2 * mebibyte)).ok());
}

TEST_CASE_TEMPLATE_DEFINE("nothing can be created or reserved of no size or of a part of a granule",
                          Fixture, odd_sizes_are_refused) {
  Fixture fixture;
  auto& backend = fixture.backend();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1000}, 2 * mebibyte + 256}) {
    typename Fixture::backend_type::physical_type h{};
    void* p = nullptr;
    CHECK(backend.create(bytes, mapping_options{}, h).failed());
    CHECK(backend.reserve(bytes, p).failed());
    CHECK(p == nullptr);
  }
}

}  // namespace conformance

#define PAGESIFT_VIRTUAL_MEMORY_CONFORMANCE(Fixture)                         \
  namespace conformance {                                                    \
  TEST_CASE_TEMPLATE_INVOKE(mapping_works, Fixture);                         \
  TEST_CASE_TEMPLATE_INVOKE(unknown_peers_are_refused, Fixture);             \
  TEST_CASE_TEMPLATE_INVOKE(reservations_are_aligned_and_distinct, Fixture); \
  TEST_CASE_TEMPLATE_INVOKE(pieces_can_move, Fixture);                       \
  TEST_CASE_TEMPLATE_INVOKE(destroyed_pieces_stay_mapped, Fixture);          \
  TEST_CASE_TEMPLATE_INVOKE(neighbours_are_unmapped_together, Fixture);      \
  TEST_CASE_TEMPLATE_INVOKE(absurd_pieces_are_a_shortage, Fixture);          \
  TEST_CASE_TEMPLATE_INVOKE(odd_sizes_are_refused, Fixture);                 \
  }                                                                          \
  static_assert(pagesift::is_virtual_backend_v<Fixture::backend_type>)
