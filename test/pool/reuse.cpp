// When a block may be handed out again.
#include "world.hpp"

#include <thread>
#include <vector>

TEST_CASE("a block freed on a stream is handed out again on it, with no call that orders or maps") {
  world w;
  const simulated_stream s = w.device.create_stream();
  for (const std::size_t bytes : {std::size_t{1}, 3 * kibibyte, mebibyte, 40 * mebibyte}) {
    void* const p = w.turn(bytes, s);
    w.device.reset_calls();
    CHECK(w.turn(bytes, s) == p);
    CHECK(w.calls_with_effect() == 0);
  }
  CHECK(w.pool->stats().hits >= 4);
}

TEST_CASE("merging gives back no more blocks than a request needs while idle memory abounds") {
  pool_options options;
  options.initial_bytes = 128 * mebibyte;
  world w{options};
  const simulated_stream s = w.device.create_stream();
  const std::vector<std::size_t> sizes{40 * mebibyte, 40 * mebibyte, 4 * mebibyte};
  std::vector<void*> blocks;
  for (const std::size_t bytes : sizes) {
    blocks.push_back(w.allocate(bytes, s));
  }
  void* const kept = w.allocate(40 * mebibyte, s);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    w.free(blocks[i], sizes[i], s);
  }
  CHECK(w.turn(70 * mebibyte, s) == blocks[0]);  // the first two, merged
  w.device.reset_calls();
  CHECK(w.turn(4 * mebibyte, s) == blocks[2]);
  CHECK(w.device.calls(simulated_call::inspect) == 1);  // a hit: the slow way asks again
  w.free(kept, 40 * mebibyte, s);
}

TEST_CASE("a million pairs on one stream make no event call and take no memory") {
  world w;
  const simulated_stream s = w.device.create_stream();
  SUBCASE("the only stream") {}
  SUBCASE("one of several") { w.show_two_streams(); }
  w.turn(4096, s);
  w.device.reset_calls();
  for (int i = 0; i < 1000000; ++i) {
    void* const p = w.pool->allocate(4096, s);
    w.pool->deallocate(p, 4096, s);
  }
  CHECK(w.calls_with_effect() == 0);
}

TEST_CASE("another stream gets a block only after the host or the stream knows it is free") {
  world w;
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  void* const p = w.allocate(mebibyte, a);
  const auto gate = w.device.gate(a);
  w.free(p, mebibyte, a);
  CHECK(w.turn(mebibyte, b) != p);
  w.device.open(gate);
}

TEST_CASE("memory goes back and forth between two streams without growing") {
  world w;
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  for (const std::size_t bytes : {512 * kibibyte, 48 * mebibyte}) {
    for (int i = 0; i < 4; ++i) {
      w.turn(bytes, i % 2 == 0 ? a : b);
      w.device.run_all();
    }
    w.device.reset_calls();
    for (int i = 0; i < 100; ++i) {
      w.turn(bytes, i % 2 == 0 ? a : b);
      w.device.run_all();
    }
    CHECK(w.device.calls(simulated_call::acquire) == 0);
  }
}

TEST_CASE("streams that are busy are not made to wait for each other while memory is free") {
  world w;
  std::vector<simulated_stream> streams;
  for (int i = 0; i < 4; ++i) {
    streams.push_back(w.device.create_stream());
    (void)w.device.gate(streams.back());
  }
  for (int round = 0; round < 10; ++round) {
    for (const simulated_stream s : streams) {
      w.turn(8 * mebibyte, s);
    }
  }
  CHECK(w.pool->stats().stream_waits == 0);
  CHECK(w.device.calls(simulated_call::wait) == 0);
  CHECK(w.device.calls(simulated_call::synchronize) == 0);
  CHECK(w.device.calls(simulated_call::fence) == 0);
}

TEST_CASE("the per-thread default streams of two threads do not share a block too early") {
  world w;
  const simulated_stream mine = pagesift::simulated_per_thread_stream;
  void* p = nullptr;
  std::thread{[&] {
    p = w.allocate(mebibyte, mine);
    (void)w.device.gate(mine);
    w.free(p, mebibyte, mine);
  }}.join();
  void* q = nullptr;
  std::thread{[&] { q = w.turn(mebibyte, mine); }}.join();
  CHECK(q != p);
}

TEST_CASE("a new stream with the handle of a dead one does not get the dead one's blocks early") {
  world w;
  for (int i = 0; i < 50; ++i) {
    const simulated_stream old = w.device.create_stream();
    void* const p = w.allocate(mebibyte, old);
    const auto gate = w.device.gate(old);
    w.free(p, mebibyte, old);
    w.device.destroy_stream(old);
    const simulated_stream young = w.device.create_stream();
    REQUIRE(young == old);
    CHECK(w.turn(mebibyte, young) != p);  // the judge looks too
    w.device.open(gate);
    w.device.destroy_stream(young);
  }
}

TEST_CASE("memory of streams that are gone is found again when it is needed") {
  world w{{}, with_budget(64 * mebibyte)};
  std::vector<simulated_stream> streams;
  for (int i = 0; i < 32; ++i) {
    streams.push_back(w.device.create_stream());
  }
  std::vector<void*> blocks;
  for (const simulated_stream s : streams) {
    blocks.push_back(w.allocate(2 * mebibyte, s));
  }
  for (std::size_t i = 0; i < streams.size(); ++i) {
    w.free(blocks[i], 2 * mebibyte, streams[i]);
  }
  for (const simulated_stream s : streams) {
    w.device.destroy_stream(s);
  }
  w.turn(64 * mebibyte, simulated_stream{});
}

TEST_CASE("a new stream for every call does not strand a gigabyte each") {
  world w;
  for (int i = 0; i < 64; ++i) {
    const simulated_stream s = w.device.create_stream();
    w.turn(gibibyte, s);
    w.device.synchronize(s);
    w.device.destroy_stream(s);
  }
  CHECK(w.pool->stats().peak_held <= 2 * gibibyte);
}

TEST_CASE("a hundred thousand streams leave behind neither events nor memory") {
  world w;
  for (int i = 0; i < 100000; ++i) {
    const simulated_stream s = w.device.create_stream();
    void* const p = w.allocate(64 * kibibyte, s);
    void* const q = w.allocate(64 * kibibyte, s);
    w.free(p, 64 * kibibyte, s);
    w.free(q, 64 * kibibyte, s);
    w.device.run_some();
    w.device.run_some();  // the device keeps up, if not at once
    w.device.destroy_stream(s);
    if (i % 1000 == 0) {
      REQUIRE(w.device.violations().empty());
      REQUIRE(w.device.live_events() <= 256);
      REQUIRE(w.pool->stats().streams <= 256);
    }
  }
  CHECK(w.pool->stats().peak_held <= 64 * mebibyte);
}

TEST_CASE("buffers that grow slowly take memory once a class, not once a size") {
  world w;
  const simulated_stream s = w.device.create_stream();
  w.turn(100 * mebibyte, s);
  const std::uint64_t before = w.pool->stats().backend_allocations;
  std::size_t classes = 0;
  pagesift::class_index last = pagesift::class_of(100 * mebibyte);
  for (std::size_t bytes = 100 * mebibyte; bytes < 200 * mebibyte; bytes += mebibyte) {
    const pagesift::class_index index = pagesift::class_of(bytes);
    classes += index != last ? 1 : 0;
    last = index;
    w.turn(bytes, s);
  }
  CHECK(w.pool->stats().backend_allocations - before <= classes);
}

TEST_CASE("a stream whose sizes change uses its own memory before new memory is taken") {
  world w;
  w.show_two_streams();
  const simulated_stream s = w.device.create_stream();
  w.turn(40 * mebibyte, s);
  w.device.reset_calls();
  for (const std::size_t bytes : {33 * mebibyte, 5 * mebibyte, 700 * kibibyte, 39 * mebibyte}) {
    w.turn(bytes, s);
  }
  CHECK(w.device.calls(simulated_call::acquire) == 0);
  CHECK(w.device.calls(simulated_call::wait) == 0);
}

TEST_CASE("what is not yet cut of a slab waits for the stream that used its pages before") {
  world w{with_limit(2 * mebibyte)};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  w.turn(2 * mebibyte, a);
  void* const p = w.allocate(4096, a);
  w.turn(4096, b);  // the judge sees it if too early
  w.free(p, 4096, a);
}

TEST_CASE("a slab whose pages a forgotten stream used last is not handed to others early") {
  world w;
  const simulated_stream a = w.device.create_stream();
  void* const p = w.allocate(2 * mebibyte, a);
  const auto gate = w.device.gate(a);
  w.free(p, 2 * mebibyte, a);
  void* const kept = w.allocate(4096, a);  // cut from the same page, most of which is left
  for (int i = 0; i < 200; ++i) {          // so many streams that finished ones are forgotten
    w.turn(256, w.device.create_stream());
    w.device.run_all();
  }
  w.turn(4096, w.device.create_stream());
  w.device.open(gate);
  w.free(kept, 4096, a);
}

TEST_CASE("trim waits for the rest of a slab whose pages were used before it was cut") {
  world w;
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  w.turn(2 * mebibyte, a);
  void* const p = w.allocate(4096, a);
  w.device.use(a, p, 4096);
  w.device.order(a, b);
  w.free(p, 4096, b);
  w.pool->retire(b);
  w.device.run_all();
  w.pool->trim();
  CHECK(w.held_bytes() == 0);
}

TEST_CASE("a free records an event where enough bytes of its stream are not covered by one") {
  pool_options options;
  options.seal_bytes = 8 * mebibyte;
  world w{options};
  w.show_two_streams();
  const simulated_stream s = w.device.create_stream();
  for (const std::size_t bytes : {3 * mebibyte, 8 * mebibyte}) {
    w.turn(bytes, s);
    w.device.reset_calls();
    w.turn(bytes, s);
    CHECK(w.device.calls(simulated_call::record) == (bytes < options.seal_bytes ? 0 : 1));
  }
}

TEST_CASE("a record that failed is made up for by the next free, and costs no event") {
  world w{{}, with_budget(64 * mebibyte)};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  w.turn(256, b);
  w.turn(256, a);
  void* p = nullptr;
  for (int i = 0; i < 100; ++i) {
    w.device.fail({simulated_call::record, 1, false, pagesift::outcome::failed, 700});
    p = w.turn(48 * mebibyte, a);
  }
  CHECK(w.device.live_events() <= 4);
  w.turn(256, a);
  CHECK(w.turn(48 * mebibyte, b) == p);
  CHECK(w.pool->stats().stream_waits == 1);
  CHECK(w.device.calls(simulated_call::fence) == 0);
}

TEST_CASE("a retired stream's memory serves other streams after it is gone") {
  world w;
  w.show_two_streams();
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  void* const p = w.turn(16 * mebibyte, a);
  w.turn(16 * mebibyte, a);  // a hit, too small to be sealed for itself
  w.pool->retire(a);
  w.device.destroy_stream(a);
  w.device.run_all();
  w.device.reset_calls();
  CHECK(w.turn(16 * mebibyte, b) == p);
  CHECK(w.device.calls(simulated_call::acquire) == 0);
  CHECK(w.device.calls(simulated_call::fence) == 0);
}

TEST_CASE("a block without a stream is one whose earlier uses the host has seen complete") {
  world w;
  const simulated_stream s = w.device.create_stream();
  w.turn(mebibyte, s);
  void* const p = w.pool->allocate_sync(mebibyte);
  w.device.hand_out(p, mebibyte);
  w.device.use(s, p, mebibyte);
  w.device.hand_back(p, mebibyte);
  w.pool->deallocate_sync(p, mebibyte);
  void* const q = w.pool->allocate_sync(mebibyte, 4096);
  w.device.hand_out(q, mebibyte);
  CHECK(aligned(q, 4096));
  w.device.hand_back(q, mebibyte);
  w.pool->deallocate_sync(q, mebibyte);
}

TEST_CASE("a pool waits for the frees that are pending when it is destroyed") {
  simulated_options device_options;
  device_options.on_blocked_wait = pagesift::blocked_wait::opens_gates;
  world w{{}, device_options};
  const simulated_stream s = w.device.create_stream();
  const simulated_stream other = w.device.create_stream();
  w.turn(mebibyte, other);
  void* const p = w.allocate(mebibyte, s);
  (void)w.device.gate(s);
  w.free(p, mebibyte, s);
  w.pool.reset();  // the judge sees a release that comes too early
  CHECK(w.held_bytes() == 0);
}
