// When a pool gives memory back to its backend.
#include "world.hpp"

#include <vector>

TEST_CASE("trim gives all idle memory back") {
  world w;
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  for (const std::size_t bytes : {std::size_t{1}, 3000 * kibibyte, 40 * mebibyte}) {
    w.turn(bytes, a);
    w.turn(bytes, b);
  }
  w.pool->trim();
  CHECK(w.pool->stats().held == 0);
  CHECK(w.held_bytes() == 0);
  check_invariants(w.pool->stats());
  w.turn(40 * mebibyte, a);
}

TEST_CASE("trim recovers the memory of streams that are gone") {
  world w;
  for (int i = 0; i < 10; ++i) {
    const simulated_stream s = w.device.create_stream();
    w.turn(5 * mebibyte, s);
    w.device.destroy_stream(s);
  }
  w.pool->trim();
  CHECK(w.held_bytes() == 0);
}

TEST_CASE("trim keeps what it is told to keep, and gives back the oldest") {
  world w{on_plain_memory()};
  const simulated_stream s = w.device.create_stream();
  std::vector<void*> blocks;
  for (int i = 0; i < 4; ++i) {
    blocks.push_back(w.allocate(40 * mebibyte, s));
  }
  for (void* const p : blocks) {
    w.free(p, 40 * mebibyte, s);
  }
  w.device.synchronize();
  w.pool->trim(160 * mebibyte);
  CHECK(w.pool->stats().idle == 160 * mebibyte);
  w.pool->trim(100 * mebibyte);
  CHECK(w.pool->stats().idle == 80 * mebibyte);
  w.device.reset_calls();
  void* const p = w.allocate(40 * mebibyte, s);
  void* const q = w.allocate(40 * mebibyte, s);
  CHECK(w.device.calls(simulated_call::acquire) == 0);
  CHECK(((p == blocks[2] && q == blocks[3]) || (p == blocks[3] && q == blocks[2])));
  w.free(p, 40 * mebibyte, s);
  w.free(q, 40 * mebibyte, s);
}

TEST_CASE("trim leaves blocks in use alone") {
  world w;
  const simulated_stream s = w.device.create_stream();
  void* const small = w.allocate(100, s);
  void* const large = w.allocate(9 * mebibyte, s);
  w.turn(200 * mebibyte, s);
  w.pool->trim();
  const pool_stats stats = w.pool->stats();
  CHECK(stats.in_use >= 9 * mebibyte);
  CHECK(stats.held < 64 * mebibyte);
  check_invariants(stats);
  w.free(small, 100, s);
  w.free(large, 9 * mebibyte, s);
}

TEST_CASE("trim waits for work that may still use the memory, and not without need") {
  world w;
  const simulated_stream s = w.device.create_stream();
  w.turn(40 * mebibyte, s);
  w.device.reset_calls();
  w.pool->trim(40 * mebibyte);
  CHECK(w.calls_with_effect() == 0);
  w.pool->trim();  // the judge sees a release that comes too early
  CHECK(w.device.calls(simulated_call::fence) == 1);
  CHECK(w.held_bytes() == 0);
  w.pool->trim();
  CHECK(w.device.calls(simulated_call::fence) == 1);
}

TEST_CASE("a release that fails loses nothing, and the next trim tries again") {
  world w{on_plain_memory()};
  const simulated_stream s = w.device.create_stream();
  w.turn(40 * mebibyte, s);
  w.turn(100 * mebibyte, s);
  const std::size_t held = w.pool->stats().held;
  w.device.fail({simulated_call::release, 1, false, pagesift::outcome::failed, 700});
  CHECK_THROWS_AS(w.pool->trim(), pagesift::backend_error);
  CHECK(w.pool->stats().held == held);
  check_invariants(w.pool->stats());
  w.pool->trim();
  CHECK(w.held_bytes() == 0);
}

TEST_CASE("a range that a pool cannot release at its end keeps it from releasing no other") {
  pagesift::simulated_device device;
  {
    simulated_pool pool{pagesift::simulated_backend{device}, on_plain_memory()};
    const simulated_stream s = device.create_stream();
    void* const p = pool.allocate(40 * mebibyte, s);
    void* const q = pool.allocate(100 * mebibyte, s);
    pool.deallocate(p, 40 * mebibyte, s);
    pool.deallocate(q, 100 * mebibyte, s);
    device.fail({simulated_call::release, 1, false, pagesift::outcome::failed, 700});
  }
  const std::size_t left = device.acquired_bytes();
  CHECK((left == 40 * mebibyte || left == 104 * mebibyte));  // a class, in plain memory
}

TEST_CASE("the end of a batch gives back the classes that no request touched in it") {
  world w{on_plain_memory()};
  const simulated_stream s = w.device.create_stream();
  w.turn(40 * mebibyte, s);
  w.turn(100 * mebibyte, s);
  w.pool->end_batch();
  CHECK(w.pool->stats().held >= 140 * mebibyte);  // both were touched
  void* const p = w.turn(40 * mebibyte, s);
  w.pool->end_batch();
  const pool_stats stats = w.pool->stats();
  CHECK(stats.held >= 40 * mebibyte);
  CHECK(stats.held < 100 * mebibyte);
  w.device.reset_calls();
  CHECK(w.turn(40 * mebibyte, s) == p);
  CHECK(w.device.calls(simulated_call::acquire) == 0);
  w.pool->end_batch();
  w.pool->end_batch();
  CHECK(w.held_bytes() == 0);
}

TEST_CASE("the end of a batch keeps free pages that were in use during it") {
  world w;
  const simulated_stream s = w.device.create_stream();
  void* const p = w.allocate(100 * mebibyte, s);
  w.turn(40 * mebibyte, s);
  w.free(p, 100 * mebibyte, s);
  w.pool->trim(110 * mebibyte);  // leaves the pages of one block, no longer cut
  const std::size_t held = w.pool->stats().held;
  CHECK(held != 0);
  w.pool->end_batch();
  CHECK(w.pool->stats().held == held);
  w.pool->end_batch();
  CHECK(w.pool->stats().held == 0);
}

TEST_CASE("the end of a batch gives back free pages whose stream no request named any more") {
  world w{on_plain_memory()};
  const simulated_stream s = w.device.create_stream();
  w.turn(40 * mebibyte, s);
  void* const p = w.allocate(400 * mebibyte, s);  // makes pages of the block of before
  w.pool->end_batch();
  CHECK(w.pool->stats().idle == 40 * mebibyte);
  w.pool->end_batch();
  CHECK(w.pool->stats().idle == 0);
  w.free(p, 400 * mebibyte, s);
}

TEST_CASE("the end of a batch makes no call while every class is in use again") {
  world w;
  const simulated_stream s = w.device.create_stream();
  for (int batch = 0; batch < 3; ++batch) {
    w.turn(40 * mebibyte, s);
    w.turn(5000, s);
    w.pool->end_batch();
  }
  w.device.reset_calls();
  w.turn(40 * mebibyte, s);
  w.turn(5000, s);
  w.pool->end_batch();
  CHECK(w.calls_with_effect() == 0);
}

TEST_CASE("a small block in use keeps its range and no other") {
  world w;
  const simulated_stream s = w.device.create_stream();
  std::vector<void*> blocks;
  for (int i = 0; i < 10000; ++i) {
    blocks.push_back(w.allocate(4096, s));
  }
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    w.free(blocks[i], 4096, s);
  }
  w.pool->trim();
  CHECK(w.pool->stats().held == 2 * mebibyte);  // the first range has one page
  w.free(blocks[0], 4096, s);
  w.pool->trim();
  CHECK(w.pool->stats().held == 0);
}
