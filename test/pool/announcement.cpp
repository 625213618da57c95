// What a pool tells tools about its memory.
#include "world.hpp"

#include <cstddef>
#include <iterator>

namespace {

pool_options announcing(pagesift::checks checks = pagesift::checks::standard) {
  pool_options options;
  options.announce = true;
  options.checks = checks;
  options.backing = pagesift::backing::automatic;
  return options;
}

/// A pool that leaves the backing to the library.
struct scene {
  explicit scene(const pool_options& options)
      : pool{pagesift::simulated_backend{device}, options}, s{device.create_stream()} {}

  pagesift::simulated_device device;
  simulated_pool pool;
  simulated_stream s;
};

/// Every region lies in one heap.
void check_regions_lie_in_heaps(const pagesift::simulated_announcements& told) {
  for (const auto& [p, bytes] : told.regions) {
    const auto next = told.heaps.upper_bound(p);
    REQUIRE(next != told.heaps.begin());
    const auto& [heap, heap_bytes] = *std::prev(next);
    CHECK(static_cast<const std::byte*>(p) + bytes <=
          static_cast<const std::byte*>(heap) + heap_bytes);
  }
}

}  // namespace

TEST_CASE("what a pool holds is announced as heaps, its blocks in use as regions of them") {
  for (const auto checks : {pagesift::checks::standard, pagesift::checks::full}) {
    scene t{announcing(checks)};
    void* const p = t.pool.allocate(1000, t.s);
    void* const q = t.pool.allocate(30 * mebibyte, t.s);
    void* const r = t.pool.allocate_sync(5);
    const auto told = t.device.announced();
    CHECK(told.regions.size() == 3);
    CHECK(told.regions.at(p) == 1000);
    CHECK(told.regions.at(q) == 30 * mebibyte);
    CHECK(told.regions.at(r) == 5);
    check_regions_lie_in_heaps(told);
    t.pool.deallocate(p, 1000, t.s);
    CHECK(t.device.announced().regions.count(p) == 0);
    t.pool.deallocate(q, 30 * mebibyte, t.s);
    t.pool.deallocate_sync(r, 5);
    CHECK(t.device.announced().regions.empty());
    t.pool.trim();
    CHECK(t.device.announced().heaps.empty());
  }
}

TEST_CASE("between announced blocks lies memory that is nobody's") {
  scene t{announcing()};
  auto* const p = static_cast<std::byte*>(t.pool.allocate(256, t.s));
  auto* const q = static_cast<std::byte*>(t.pool.allocate(256, t.s));
  CHECK((p < q ? q - p : p - q) >= 2 * 256);
  t.pool.deallocate(p, 256, t.s);
  t.pool.deallocate(q, 256, t.s);
}

TEST_CASE("a hit is announced as well") {
  scene t{announcing()};
  for (int i = 0; i < 3; ++i) {
    void* const p = t.pool.allocate(256, t.s);
    CHECK(t.device.announced().regions.count(p) == 1);
    t.pool.deallocate(p, 256, t.s);
    CHECK(t.device.announced().regions.empty());
  }
}

TEST_CASE("announced memory is plain, and a pool that must map it is refused") {
  scene t{announcing()};
  t.pool.deallocate(t.pool.allocate(256, t.s), 256, t.s);
  CHECK(t.device.acquired_bytes() > 0);
  CHECK(t.device.physical_bytes() == 0);
  pool_options mapped = announcing();
  mapped.backing = pagesift::backing::virtual_memory;
  CHECK_THROWS_AS((simulated_pool{pagesift::simulated_backend{t.device}, mapped}),
                  pagesift::invalid_argument);
}

TEST_CASE("an announcing pool with full checks leaves looking at memory to the tool") {
  scene t{announcing(pagesift::checks::full)};
  t.pool.deallocate(t.pool.allocate(256, t.s), 256, t.s);
  CHECK(t.device.calls(simulated_call::fill) == 0);
  CHECK(t.device.calls(simulated_call::copy_to_host) == 0);
}

TEST_CASE("a foreign pointer is rejected by an announcing pool as by any") {
  scene t{announcing()};
  int local = 0;
  t.pool.deallocate(&local, sizeof local, t.s);
  CHECK(t.pool.stats().rejected_frees == 1);
}

TEST_CASE("memory whose release fails stays announced") {
  scene t{announcing()};
  t.pool.deallocate(t.pool.allocate(256, t.s), 256, t.s);
  t.device.fail({simulated_call::release});
  CHECK_THROWS_AS(t.pool.trim(), pagesift::backend_error);
  CHECK(t.device.announced().heaps.size() == 1);
}
