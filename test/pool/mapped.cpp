// A pool whose memory is mapped behind reserved addresses: growth, sift, slack, release.
#include "world.hpp"

#include <vector>

namespace {

constexpr std::size_t device_budget = 256 * mebibyte;

/// A full device in which every second block of `bytes` bytes is free again.
struct checkered {
  explicit checkered(std::size_t block_bytes)
      : w{on_mapped_memory(), with_budget(device_budget)}, bytes{block_bytes} {
    std::vector<void*> all;
    for (std::size_t i = 0; i < device_budget / bytes; ++i) {
      all.push_back(w.allocate(bytes, s));
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i % 2 == 0) {
        w.free(all[i], bytes, s);
      } else {
        kept.push_back(all[i]);
      }
    }
  }

  void free_kept() {
    for (void* const p : kept) {
      w.free(p, bytes, s);
    }
    kept.clear();
  }

  world w;
  simulated_stream s = w.device.create_stream();
  std::size_t bytes;
  std::vector<void*> kept;
};

std::uint64_t moves(const world& w) {
  return w.device.calls(simulated_call::map) - w.device.calls(simulated_call::create);
}

}  // namespace

TEST_CASE("free granules that lie apart serve one large request, and nothing is released for it") {
  checkered c{32 * mebibyte};
  const std::size_t held = c.w.pool->stats().held;
  void* const p = c.w.allocate(device_budget / 2, c.s);
  CHECK(c.w.pool->stats().held == held);
  CHECK(c.w.device.calls(simulated_call::destroy) == 0);
  CHECK(moves(c.w) > 0);
  CHECK(moves(c.w) < device_budget / 2 / (4 * mebibyte));
  c.w.free(p, device_budget / 2, c.s);
  c.free_kept();
}

TEST_CASE("a request that cannot be met moves nothing and releases nothing") {
  checkered c{32 * mebibyte};
  const std::size_t held = c.w.pool->stats().held;
  c.w.device.reset_calls();
  CHECK_THROWS_AS((void)c.w.pool->allocate(device_budget / 2 + 2 * mebibyte, c.s),
                  pagesift::out_of_memory);
  CHECK(c.w.device.calls(simulated_call::unmap) == 0);
  CHECK(c.w.device.calls(simulated_call::destroy) == 0);
  CHECK(c.w.pool->stats().held == held);
  c.free_kept();
}

TEST_CASE("memory that submitted work may still use is moved only when that is complete") {
  checkered c{32 * mebibyte};
  const simulated_stream other = c.w.device.create_stream();
  c.w.device.reset_calls();
  c.w.turn(device_budget / 2, other);  // the judge sees an unmapping that comes too early
  CHECK(c.w.device.calls(simulated_call::synchronize) + c.w.device.calls(simulated_call::fence) >
        0);
  c.free_kept();
}

TEST_CASE("free granules and new memory are put together, up to the limit") {
  world w{on_mapped_memory(), with_budget(128 * mebibyte)};
  const simulated_stream s = w.device.create_stream();
  void* const first = w.allocate(32 * mebibyte, s);
  void* const second = w.allocate(32 * mebibyte, s);
  w.free(first, 32 * mebibyte, s);
  void* const large = w.allocate(96 * mebibyte, s);
  CHECK(w.pool->stats().held == 128 * mebibyte);
  CHECK(moves(w) > 0);
  w.free(large, 96 * mebibyte, s);
  w.free(second, 32 * mebibyte, s);
}

TEST_CASE("a device that others fill lets a request have what is free in the pool") {
  checkered c{32 * mebibyte};
  c.w.device.set_budget(device_budget / 2);
  c.w.turn(device_budget / 2, c.s);
  c.free_kept();
}

TEST_CASE("what large blocks in use do not need serves others in a shortage") {
  world w{on_mapped_memory(), with_budget(1024 * mebibyte)};
  const simulated_stream s = w.device.create_stream();
  constexpr std::size_t bytes = 66 * mebibyte;  // its class has 72
  w.turn(72 * mebibyte, s);
  void* const first = w.allocate(bytes, s);
  CHECK(w.pool->stats().in_use == 72 * mebibyte);
  w.device.set_budget(w.pool->stats().held);
  std::vector<void*> rest;
  while (w.pool->stats().idle != 0) {
    rest.push_back(w.allocate(2 * mebibyte, s));
  }
  void* const slack = w.allocate(4 * mebibyte, s);
  CHECK(slack == static_cast<std::byte*>(first) + bytes);
  CHECK(w.pool->stats().in_use == w.pool->stats().held - 2 * mebibyte);
  check_invariants(w.pool->stats());
  w.free(slack, 4 * mebibyte, s);
  w.free(first, bytes, s);
  for (void* const p : rest) {
    w.free(p, 2 * mebibyte, s);
  }
  check_invariants(w.pool->stats());
}

TEST_CASE("a large block gets just the pages it needs, and its class finds new memory once") {
  world w{on_mapped_memory(), with_budget(16 * gibibyte)};
  const simulated_stream s = w.device.create_stream();
  void* const first = w.allocate(66 * mebibyte, s);
  CHECK(w.pool->stats().in_use == 66 * mebibyte);
  CHECK(w.pool->stats().held == 72 * mebibyte);
  w.free(first, 66 * mebibyte, s);
  w.turn(72 * mebibyte, s);
  CHECK(w.device.calls(simulated_call::create) == 2);
}

TEST_CASE("a pool that holds little moves free granules before it takes more") {
  simulated_options device = with_budget(16 * gibibyte);
  device.prompt = true;
  world w{on_mapped_memory(), device};
  const simulated_stream s = w.device.create_stream();
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) {
    blocks.push_back(w.allocate(64 * mebibyte, s));
  }
  const std::size_t held = w.pool->stats().held;
  for (const std::size_t i : {1U, 4U, 6U}) {
    w.free(blocks[i], 64 * mebibyte, s);
  }
  void* const moved = w.allocate(192 * mebibyte, s);
  CHECK(w.pool->stats().held == held);
  CHECK(moves(w) > 0);
  CHECK(w.device.calls(simulated_call::synchronize) == 0);  // nobody waits for it
  w.free(moved, 192 * mebibyte, s);
  for (const std::size_t i : {0U, 2U, 3U, 5U, 7U}) {
    w.free(blocks[i], 64 * mebibyte, s);
  }
}

TEST_CASE("a granule that a block would cut is made anew in parts when memory is scarce") {
  simulated_options device = with_budget(1024 * mebibyte);
  device.prompt = true;
  world w{on_mapped_memory(), device};
  const simulated_stream s = w.device.create_stream();
  void* const large = w.allocate(640 * mebibyte, s);  // granules of 320, 160, 80, 64, 16 MiB
  std::vector<void*> rest;
  for (int i = 0; i < 12; ++i) {
    rest.push_back(w.allocate(32 * mebibyte, s));
  }
  w.free(large, 640 * mebibyte, s);
  w.device.reset_calls();
  void* const cut = w.allocate(400 * mebibyte, s);  // needs half of the second granule
  CHECK(w.device.calls(simulated_call::destroy) == 1);
  CHECK(w.device.calls(simulated_call::create) == 1);
  CHECK(w.pool->stats().held == (1024 - 80) * mebibyte);
  w.free(cut, 400 * mebibyte, s);
  for (void* const p : rest) {
    w.free(p, 32 * mebibyte, s);
  }
}

TEST_CASE("slack is another stream's only after the work before it, and is lost by no one") {
  world w{on_mapped_memory(), with_budget(1024 * mebibyte)};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  constexpr std::size_t bytes = 66 * mebibyte;
  w.turn(72 * mebibyte, a);  // uses the pages that are slack next
  void* const first = w.allocate(bytes, a);
  w.device.set_budget(w.pool->stats().held);
  std::vector<void*> rest;
  while (w.pool->stats().idle != 0) {
    rest.push_back(w.allocate(2 * mebibyte, a));
  }
  void* const slack = w.allocate(4 * mebibyte, b);
  CHECK(slack == static_cast<std::byte*>(first) + bytes);
  w.free(slack, 4 * mebibyte, b);
  w.free(first, bytes, a);
  for (void* const p : rest) {
    w.free(p, 2 * mebibyte, a);
  }
}

TEST_CASE("trim releases single granules beside a block in use") {
  world w{on_mapped_memory()};
  const simulated_stream s = w.device.create_stream();
  void* const large = w.allocate(200 * mebibyte, s);
  w.free(large, 200 * mebibyte, s);
  void* const small = w.allocate(2 * mebibyte, s);
  w.pool->trim();
  CHECK(w.pool->stats().held < 200 * mebibyte + 32 * mebibyte);
  w.free(small, 2 * mebibyte, s);
  w.pool->trim();
  CHECK(w.pool->stats().held == 0);
}

TEST_CASE("trim keeps nearly what it is told to keep") {
  world w{on_mapped_memory(), with_budget(1024 * mebibyte)};
  const simulated_stream s = w.device.create_stream();
  std::vector<void*> blocks;
  for (int i = 0; i < 20; ++i) {
    blocks.push_back(w.allocate(40 * mebibyte, s));
  }
  for (void* const p : blocks) {
    w.free(p, 40 * mebibyte, s);
  }
  w.pool->trim(500 * mebibyte);
  CHECK(w.pool->stats().idle <= 500 * mebibyte);
  CHECK(w.pool->stats().idle >= (500 - 32) * mebibyte);
}

TEST_CASE("an unmapping that fails in a trim loses nothing, and the next trim tries again") {
  for (const simulated_call call : {simulated_call::unmap, simulated_call::destroy}) {
    world w{on_mapped_memory()};
    const simulated_stream s = w.device.create_stream();
    w.turn(40 * mebibyte, s);
    w.turn(100 * mebibyte, s);
    const std::size_t held = w.pool->stats().held;
    w.device.fail({call, 1, false, pagesift::outcome::failed, 700});
    CHECK_THROWS_AS(w.pool->trim(), pagesift::backend_error);
    CHECK(w.pool->stats().held == held);
    CHECK(w.held_bytes() == held);
    check_invariants(w.pool->stats());
    w.pool->trim();
    CHECK(w.held_bytes() == 0);
  }
}

TEST_CASE("every call of a sift may fail; nothing is lost, and what was free serves again") {
  for (const bool shortage : {false, true}) {
    for (std::uint64_t n = 1;; ++n) {
      checkered c{32 * mebibyte};
      c.w.device.synchronize();
      c.w.device.reset_calls();
      c.w.device.fail({{},
                       n,
                       false,
                       shortage ? pagesift::outcome::shortage : pagesift::outcome::failed,
                       shortage ? 2 : 700});
      bool served = false;
      try {
        c.w.turn(device_budget / 2, c.s);
        served = true;
      } catch (const pagesift::backend_error&) {
      } catch (const pagesift::out_of_memory&) {
      }
      c.w.device.clear_faults();
      CHECK(c.w.pool->stats().held == c.w.held_bytes());
      CHECK(c.w.device.mapped_bytes() == c.w.device.physical_bytes());
      CHECK(c.w.held_bytes() == device_budget);
      check_invariants(c.w.pool->stats());
      c.w.turn(device_budget / 2, c.s);
      c.free_kept();
      if (served && n > 60) {
        break;
      }
    }
  }
}

TEST_CASE("a granule that can be mapped nowhere is given up, and is held no more") {
  checkered c{32 * mebibyte};
  c.w.device.synchronize();
  c.w.device.fail({simulated_call::map, 1, true, pagesift::outcome::failed, 700});
  CHECK_THROWS_AS((void)c.w.pool->allocate(device_budget / 2, c.s), pagesift::backend_error);
  c.w.device.clear_faults();
  const pool_stats stats = c.w.pool->stats();
  CHECK(stats.held < device_budget);
  CHECK(stats.held == c.w.held_bytes());
  check_invariants(stats);
  c.w.turn(device_budget / 2, c.s);  // what was given up can be had anew
  c.free_kept();
}

TEST_CASE("virtual memory that does not work here is refused where it was asked for") {
  simulated_options without = with_budget(device_budget);
  without.virtual_memory = false;
  CHECK_THROWS_AS(world(on_mapped_memory(), without), pagesift::backend_error);
  pool_options with_peer;
  with_peer.mapping.peers = {1};
  with_peer.backing = pagesift::backing::automatic;
  pagesift::simulated_device device;
  CHECK_THROWS_AS(simulated_pool(pagesift::simulated_backend{device}, with_peer),
                  pagesift::invalid_argument);
}

TEST_CASE("without a wish memory is mapped where that works, and acquired elsewhere") {
  for (const bool works : {true, false}) {
    simulated_options options;
    options.virtual_memory = works;
    pagesift::simulated_device device{options};
    simulated_pool pool{pagesift::simulated_backend{device}};
    void* const p = pool.allocate(mebibyte, simulated_stream{});
    CHECK((device.physical_bytes() != 0) == works);
    CHECK((device.acquired_bytes() != 0) == !works);
    pool.deallocate(p, mebibyte, simulated_stream{});
  }
}

TEST_CASE("initial bytes are mapped in granules that can be moved") {
  pool_options options = on_mapped_memory();
  options.initial_bytes = 100 * mebibyte;
  world w{options};
  CHECK(w.pool->stats().held == 100 * mebibyte);
  CHECK(w.device.calls(simulated_call::create) == 4);
}

TEST_CASE("more addresses are reserved when the first are used up") {
  simulated_options options = with_budget(device_budget);
  options.reservation_bytes = 4 * device_budget + 4 * mebibyte;
  world w{on_mapped_memory(), options};
  const simulated_stream s = w.device.create_stream();
  void* blocker = w.allocate(2 * mebibyte, s);
  for (int i = 0; i < 40; ++i) {
    w.turn((100 + static_cast<std::size_t>(i)) * mebibyte, s);
    w.device.synchronize();
    void* const next = w.allocate(2 * mebibyte, s);
    w.free(blocker, 2 * mebibyte, s);
    blocker = next;
  }
  w.free(blocker, 2 * mebibyte, s);
}
