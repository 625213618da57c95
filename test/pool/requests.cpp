// Requests at the edges, and frees that name no block.
#include "world.hpp"

#include <array>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace {

constexpr std::size_t largest = std::numeric_limits<std::size_t>::max();

void check_same_counters(const pool_stats& after, const pool_stats& before) {
  CHECK(after.held == before.held);
  CHECK(after.in_use == before.in_use);
  CHECK(after.peak_held == before.peak_held);
  CHECK(after.peak_in_use == before.peak_in_use);
  CHECK(after.hits == before.hits);
  CHECK(after.misses == before.misses);
}

}  // namespace

TEST_CASE("requests of no bytes are answered, and freeing nothing is nothing") {
  world w;
  const simulated_stream s{};
  w.turn(1, s);
  const pool_stats before = w.pool->stats();
  for (int i = 0; i < 1000; ++i) {
    void* const p = w.pool->allocate(0, s);
    w.pool->deallocate(p, 0, s);
    w.pool->deallocate(nullptr, 0, s);
    w.pool->deallocate(nullptr, 100, s);
  }
  const pool_stats after = w.pool->stats();
  CHECK(after.in_use == before.in_use);
  CHECK(after.held == before.held);
  CHECK(after.rejected_frees == 0);
}

TEST_CASE("requests of no bytes that are alive together do not collide with blocks") {
  world w;
  const simulated_stream s{};
  std::vector<void*> empty;
  for (int i = 0; i < 1000; ++i) {
    empty.push_back(w.pool->allocate(0, s));
  }
  void* const p = w.allocate(256, s);
  w.free(p, 256, s);
  for (void* const e : empty) {
    w.pool->deallocate(e, 0, s);
  }
  CHECK(w.pool->stats().in_use == 0);
  CHECK(w.pool->stats().rejected_frees == 0);
}

TEST_CASE("sizes around every power of two get a block that holds them") {
  world w;
  const simulated_stream s{};
  for (unsigned k = 0; k <= 32; ++k) {
    for (const std::size_t bytes :
         {(std::size_t{1} << k) - 1, std::size_t{1} << k, (std::size_t{1} << k) + 1}) {
      void* const p = w.allocate(bytes, s);
      CHECK(w.pool->stats().in_use >= bytes);
      w.free(p, bytes, s);
      CHECK(w.pool->stats().in_use == 0);
    }
    w.pool->trim();
  }
}

TEST_CASE("sizes that wrap or exceed all memory fail at once and change nothing") {
  world w;
  const simulated_stream s = w.device.create_stream();
  w.turn(40 * mebibyte, s);
  const pool_stats before = w.pool->stats();
  w.device.reset_calls();
  std::vector<std::size_t> sizes{(std::size_t{1} << 63) - 1, std::size_t{1} << 63,
                                 (std::size_t{1} << 63) + 1, (std::size_t{1} << 62) + 1,
                                 std::size_t{1} << 62,       std::size_t{1} << 50};
  for (std::size_t k = 0; k <= 4096; k += k < 16 ? 1 : 255) {
    sizes.push_back(largest - k);
  }
  for (const std::size_t bytes : sizes) {
    CHECK_THROWS_AS((void)w.pool->allocate(bytes, s), std::bad_alloc);
    CHECK_THROWS_AS((void)w.pool->allocate(bytes, 2 * mebibyte, s), std::bad_alloc);
    CHECK_THROWS_AS((void)w.pool->allocate_sync(bytes), std::bad_alloc);
  }
  check_same_counters(w.pool->stats(), before);
  CHECK(w.calls_with_effect() == 0);
}

TEST_CASE("what cannot be served is refused by its own number, the same in every way of asking") {
  for (const auto checks : {pagesift::checks::standard, pagesift::checks::full}) {
    pool_options options;
    options.checks = checks;
    world w{options};
    for (const std::size_t bytes : {largest, largest / 2, (std::size_t{1} << 62) + 1}) {
      const std::string message = pagesift::size_overflow{bytes, 1}.what();
      const auto refused = [&](const auto& request) {
        CHECK_THROWS_WITH_AS(request(), message.c_str(), pagesift::size_overflow);
      };
      for (const std::size_t alignment : {std::size_t{1}, 2 * mebibyte}) {
        refused([&] { (void)w.pool->allocate(bytes, alignment, {}); });
        refused([&] { (void)w.pool->allocate_sync(bytes, alignment); });
      }
      CHECK_THROWS_AS((void)w.pool->allocate(bytes, 3, {}), pagesift::invalid_alignment);
      CHECK_THROWS_AS((void)w.pool->allocate_sync(bytes, 3), pagesift::invalid_alignment);
    }
  }
}

TEST_CASE("blocks start at a multiple of the alignment asked for") {
  world w;
  const simulated_stream s{};
  for (std::size_t alignment = 1; alignment <= 2 * mebibyte; alignment *= 2) {
    std::vector<void*> blocks;
    const std::array<std::size_t, 6> sizes{1,           100, 4097, 300 * kibibyte, mebibyte + 1,
                                           5 * mebibyte};
    for (const std::size_t bytes : sizes) {
      blocks.push_back(w.allocate(bytes, s, alignment));
      CHECK(aligned(blocks.back(), alignment));
      CHECK(aligned(blocks.back(), pagesift::default_alignment));
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      w.free(blocks[i], sizes[i], s);
    }
  }
  CHECK(w.pool->stats().in_use == 0);
}

TEST_CASE("blocks are aligned even where the backend's memory is not aligned to pages") {
  simulated_options device_options;
  device_options.page_aligned = false;
  world w{{}, device_options};
  const simulated_stream s{};
  for (std::size_t alignment = 256; alignment <= 2 * mebibyte; alignment *= 2) {
    for (const std::size_t bytes : {std::size_t{100}, 3 * mebibyte, 40 * mebibyte}) {
      void* const p = w.allocate(bytes, s, alignment);
      CHECK(aligned(p, alignment));
      w.free(p, bytes, s);
    }
  }
}

TEST_CASE("a larger block that stands in during a shortage is aligned as asked for, or none is") {
  world w{with_limit(2 * mebibyte)};
  const simulated_stream s{};
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < 2 * mebibyte / 4608; ++i) {
    blocks.push_back(w.allocate(4608, s));
  }
  for (std::size_t i = 0; i < 10; ++i) {  // the newest of them lies at no multiple of 4096
    w.free(blocks[i], 4608, s);
  }
  std::vector<void*> stand_ins;
  try {
    for (;;) {
      stand_ins.push_back(w.allocate(4096, s, 4096));
      CHECK(aligned(stand_ins.back(), 4096));
    }
  } catch (const pagesift::out_of_memory&) {
  }
  for (void* const p : stand_ins) {
    w.free(p, 4096, s);
  }
  for (std::size_t i = 10; i < blocks.size(); ++i) {
    w.free(blocks[i], 4608, s);
  }
}

TEST_CASE("an alignment that is no power of two up to 2 MiB is refused and changes nothing") {
  world w;
  const simulated_stream s{};
  w.turn(256, s);
  const pool_stats before = w.pool->stats();
  for (const std::size_t alignment :
       {std::size_t{0}, std::size_t{3}, std::size_t{257}, 4 * mebibyte, largest, largest / 2 + 1}) {
    CHECK_THROWS_AS((void)w.pool->allocate(64, alignment, s), pagesift::invalid_alignment);
    CHECK_THROWS_AS((void)w.pool->allocate_sync(64, alignment), pagesift::invalid_alignment);
  }
  check_same_counters(w.pool->stats(), before);
}

TEST_CASE("frees that name no block are rejected and counted, and the pool goes on") {
  world w;
  const simulated_stream s{};
  world other;
  char foreign = 0;
  for (const std::size_t bytes : {4 * kibibyte, 6 * mebibyte}) {
    void* const p = w.allocate(bytes, s);
    void* const q = other.allocate(bytes, simulated_stream{});
    const pool_stats before = w.pool->stats();
    w.pool->deallocate(&foreign, bytes, s);
    w.pool->deallocate(static_cast<char*>(p) + 256, bytes, s);
    w.pool->deallocate(q, bytes, s);
    w.pool->deallocate_sync(&foreign, bytes);
    const pool_stats after = w.pool->stats();
    CHECK(after.rejected_frees == before.rejected_frees + 4);
    CHECK(after.in_use == before.in_use);
    CHECK(after.held == before.held);
    w.free(p, bytes, s);
    other.free(q, bytes, simulated_stream{});
  }
}

TEST_CASE("a block freed twice is rejected the second time and handed out once") {
  world w;
  const simulated_stream s{};
  for (const std::size_t bytes : {4 * kibibyte, 6 * mebibyte}) {
    void* const p = w.allocate(bytes, s);
    w.free(p, bytes, s);
    const pool_stats before = w.pool->stats();
    w.pool->deallocate(p, bytes, s);
    CHECK(w.pool->stats().rejected_frees == before.rejected_frees + 1);
    CHECK(w.pool->stats().in_use == before.in_use);
    void* const q = w.allocate(bytes, s);
    void* const r = w.allocate(bytes, s);
    CHECK(q != r);
    w.free(q, bytes, s);
    w.free(r, bytes, s);
  }
}

TEST_CASE("a free during unwinding whose backend calls fail lets the first exception through") {
  static_assert(noexcept(std::declval<simulated_pool&>().deallocate(nullptr, 0, {})));
  static_assert(noexcept(std::declval<simulated_pool&>().deallocate_sync(nullptr, 0)));
  static_assert(std::is_nothrow_destructible_v<simulated_pool>);
  world w;
  w.show_two_streams();
  struct guard {
    world& w;
    void* p;
    ~guard() { w.free(p, 40 * mebibyte, simulated_stream{}); }
  };
  const auto fails = [&] {
    const guard freed{w, w.allocate(40 * mebibyte, simulated_stream{})};
    w.device.fail({{}, 1, true, pagesift::outcome::failed, 700});
    throw std::runtime_error{"first"};
  };
  CHECK_THROWS_WITH_AS(fails(), "first", std::runtime_error);
  w.device.clear_faults();
  w.turn(40 * mebibyte, simulated_stream{});
}

namespace {

/// A pool after the driver has gone.
struct gone_pool {
  static gone_pool& default_pool() { throw pagesift::backend_error{4, "cuCtxGetCurrent", "gone"}; }
  void* allocate_sync(std::size_t) { return nullptr; }
  void deallocate_sync(void*, std::size_t) noexcept {}
};

}  // namespace

TEST_CASE("a free through a handle whose default pool has gone does nothing and throws nothing") {
  const pagesift::pool_handle<gone_pool> handle;
  char byte = 0;
  CHECK_THROWS_AS((void)handle.allocate(1), pagesift::backend_error);
  handle.deallocate(&byte, 1);
}

TEST_CASE("memory is acquired or mapped as the options ask") {
  for (const bool mapping : {false, true}) {
    CAPTURE(mapping);
    world w{mapping ? on_mapped_memory() : on_plain_memory()};
    w.turn(40 * mebibyte, w.device.create_stream());
    CHECK((w.device.calls(simulated_call::map) != 0) == mapping);
    CHECK((w.device.calls(simulated_call::acquire) != 0) == !mapping);
  }
}
