// Blocks that other streams use than the one they are freed on.
#include "capture_scene.hpp"

#include <array>
#include <functional>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t bytes = 40 * mebibyte;

/// Work on `s` uses the block, and the pool is told.
void use_too(world& w, void* p, std::size_t size, simulated_stream s) {
  w.device.use(s, p, size);
  w.pool->record_use(p, size, s);
}

/// A device with room for one block, so that a request has to have that one.
simulated_options room_for_one() { return relaxed(64 * mebibyte); }

}  // namespace

TEST_CASE("a block that another stream uses too is not its own stream's again before that ends") {
  world w;
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  void* const p = w.allocate(bytes, a);
  const auto gate = w.device.gate(b);
  use_too(w, p, bytes, b);
  w.free(p, bytes, a);
  CHECK(w.turn(bytes, a) != p);
  CHECK(w.turn(bytes, b) != p);
  check_invariants(w.pool->stats());
  w.device.open(gate);
}

TEST_CASE("a block whose use on another stream is complete is its own stream's at once") {
  world w;
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  for (const std::size_t size : {std::size_t{5000}, bytes}) {
    void* const p = w.allocate(size, a);
    use_too(w, p, size, b);
    w.device.run_all();
    const auto gate = w.device.gate(a);
    w.free(p, size, a);
    CHECK(w.turn(size, a) == p);
    w.device.open(gate);
  }
  CHECK(w.pool->stats().stream_waits == 0);
}

TEST_CASE("on a full device the stream waits for the other's use, and the host does not") {
  world w{{}, room_for_one()};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  void* const p = w.allocate(bytes, a);
  const auto gate = w.device.gate(b);
  use_too(w, p, bytes, b);
  w.free(p, bytes, a);
  CHECK(w.turn(bytes, a) == p);
  CHECK(w.pool->stats().stream_waits == 1);
  CHECK(w.device.calls(simulated_call::synchronize) == 0);
  CHECK(w.device.calls(simulated_call::fence) == 0);
  w.device.open(gate);
}

TEST_CASE("on a full device a third stream gets the block after both uses") {
  world w{{}, room_for_one()};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  void* const p = w.allocate(bytes, a);
  use_too(w, p, bytes, b);
  w.free(p, bytes, a);
  w.turn(bytes + mebibyte, w.device.create_stream());
}

TEST_CASE("the other stream may be gone when the block is freed") {
  world w{{}, room_for_one()};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  void* const p = w.allocate(bytes, a);
  use_too(w, p, bytes, b);
  w.device.destroy_stream(b);
  const simulated_stream heir = w.device.create_stream();
  w.free(p, bytes, a);
  w.turn(bytes, heir);
}

TEST_CASE("a stream that was retired leaves what waits for others to all, without a fence") {
  for (const bool other_ends_first : {true, false}) {
    world w{{}, room_for_one()};
    const simulated_stream a = w.device.create_stream();
    const simulated_stream b = w.device.create_stream();
    void* const p = w.allocate(bytes, a);
    const auto work = w.device.gate(other_ends_first ? a : b);
    use_too(w, p, bytes, b);
    w.free(p, bytes, a);
    w.pool->retire(a);
    w.device.destroy_stream(a);
    w.device.run_all();
    w.turn(256, b);  // sees what has ended
    w.device.open(work);
    w.device.run_all();
    CHECK(w.turn(bytes, w.device.create_stream()) == p);
    CHECK(w.pool->stats().fences == 0);
  }
}

TEST_CASE("where streams come and go, what waits for others is sealed at its free like all else") {
  world w{{}, room_for_one()};
  for (int i = 0; i < 64; ++i) {
    w.turn(256, w.device.create_stream());
  }
  const simulated_stream a = w.device.create_stream();
  void* const p = w.allocate(bytes, a);
  use_too(w, p, bytes, w.device.create_stream());
  w.free(p, bytes, a);
  w.device.destroy_stream(a);
  w.device.run_all();
  CHECK(w.turn(bytes, w.device.create_stream()) == p);
  CHECK(w.pool->stats().fences == 0);
}

TEST_CASE("a block may be used on many streams, and on each again, for one event each") {
  world w{{}, room_for_one()};
  const simulated_stream a = w.device.create_stream();
  std::array<simulated_stream, 3> others;
  for (simulated_stream& s : others) {
    s = w.device.create_stream();
  }
  void* const p = w.allocate(bytes, a);
  for (int round = 0; round < 10; ++round) {
    for (const simulated_stream s : others) {
      use_too(w, p, bytes, s);
    }
  }
  CHECK(w.device.live_events() <= others.size() + 1);
  w.free(p, bytes, a);
  w.turn(bytes, a);
  CHECK(w.pool->stats().stream_waits == others.size());
}

TEST_CASE("a use on the stream of the free is in that stream's order already") {
  world w;
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  void* const p = w.allocate(bytes, a);
  w.device.order(a, b);
  const auto gate = w.device.gate(b);
  use_too(w, p, bytes, b);
  w.free(p, bytes, b);
  CHECK(w.turn(bytes, b) == p);
  w.device.open(gate);
}

TEST_CASE("a use is waited for although the free comes from the slow path's threads or no stream") {
  world w{{}, room_for_one()};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  void* const p = w.allocate(bytes, a);
  use_too(w, p, bytes, b);
  SUBCASE("another thread") {
    std::thread{[&] { w.free(p, bytes, a); }}.join();
  }
  SUBCASE("no stream") {
    w.device.hand_back(p, bytes);
    w.pool->deallocate_sync(p, bytes);
  }
  SUBCASE("a bound stream") {
    const auto bound = w.pool->on(a);
    w.device.hand_back(a, p, bytes);
    bound.deallocate(p, bytes);
  }
  SUBCASE("a stream that captures") {
    w.device.begin_capture(a);
    w.pool->deallocate(w.pool->allocate(256, a), 256, a);
    w.device.hand_back(p, bytes);
    w.pool->deallocate(p, bytes, a);
    CHECK(w.device.end_capture(a));
    w.turn(256, a);
  }
  w.turn(bytes, a);
  w.turn(bytes, b);
}

TEST_CASE("trim and the pool's end wait for uses on other streams") {
  world w;
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  void* const p = w.allocate(bytes, a);
  use_too(w, p, bytes, b);
  w.free(p, bytes, a);
  SUBCASE("trim") {
    w.pool->trim();
    CHECK(w.held_bytes() == 0);
  }
  SUBCASE("the end") {}  // the world sees to it
}

TEST_CASE("the per-thread default streams of two threads count as two other streams") {
  world w{{}, room_for_one()};
  const simulated_stream mine = pagesift::simulated_per_thread_stream;
  void* const p = w.allocate(bytes, mine);
  std::thread{[&] { use_too(w, p, bytes, mine); }}.join();
  w.free(p, bytes, mine);
  w.turn(bytes, mine);
  CHECK(w.pool->stats().stream_waits + w.device.calls(simulated_call::query) > 0);
}

TEST_CASE("a use on a capturing stream is refused, and the capture stays valid") {
  world w;
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  void* const p = w.allocate(bytes, a);
  w.device.begin_capture(b);
  CHECK_THROWS_AS(w.pool->record_use(p, bytes, b), pagesift::capture_error);
  CHECK(w.device.end_capture(b));
  w.free(p, bytes, a);
  w.pool->retire(b);
  CHECK(w.turn(bytes, a) == p);
}

TEST_CASE("a use of memory that nobody has is refused and changes nothing") {
  world w;
  const simulated_stream a = w.device.create_stream();
  void* const q = w.allocate(5000, a);
  void* const p = w.turn(bytes, a);
  int other = 0;
  for (void* const wrong : {p, static_cast<void*>(&other), static_cast<void*>(nullptr),
                            static_cast<void*>(static_cast<std::byte*>(q) + 256)}) {
    CHECK_THROWS_AS(w.pool->record_use(wrong, 256, a), pagesift::invalid_argument);
  }
  CHECK(w.pool->stats().live_events == 0);
  w.free(q, 5000, a);
}

TEST_CASE("any call may fail while a use is recorded, and where its block is wanted again") {
  for (const bool recording : {true, false}) {
    for (std::uint64_t n = 1; n < 12; ++n) {
      world w{{}, room_for_one()};
      const simulated_stream a = w.device.create_stream();
      const simulated_stream b = w.device.create_stream();
      void* const p = w.allocate(bytes, a);
      const auto record = [&] { use_too(w, p, bytes, b); };
      const auto wanted = [&] { w.turn(bytes, a); };
      const std::function<void()> act = recording ? std::function<void()>{record} : wanted;
      if (!recording) {
        record();
        w.free(p, bytes, a);
      }
      w.device.fail({{}, n, false, pagesift::outcome::failed, 700});
      try {
        act();
      } catch (const pagesift::backend_error&) {
      }
      w.device.clear_faults();
      check_invariants(w.pool->stats());
      CHECK(w.pool->stats().live_events == w.device.live_events());
      if (recording) {
        record();
        w.free(p, bytes, a);
      }
      wanted();
    }
  }
}

TEST_CASE("a use that cannot be asked after counts as going on") {
  world w;
  const simulated_stream a = w.device.create_stream();
  void* const p = w.allocate(bytes, a);
  w.device.fail({simulated_call::query, 1, true, pagesift::outcome::failed, 700});
  for (int i = 0; i < 16; ++i) {  // at the last one the pool looks which are complete
    const simulated_stream b = w.device.create_stream();
    (void)w.device.gate(b);
    use_too(w, p, bytes, b);
  }
  CHECK(w.device.calls(simulated_call::query) > 0);
  w.device.clear_faults();
  w.free(p, bytes, a);
  CHECK(w.turn(bytes, a) != p);
  w.device.open_all_gates();
}

TEST_CASE("random uses on other streams never let memory go too early, and none is lost") {
  std::mt19937_64 random{7};
  const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  world w{{}, with_budget(160 * mebibyte)};
  std::array<simulated_stream, 4> streams;
  for (simulated_stream& s : streams) {
    s = w.device.create_stream();
  }
  struct held {
    void* p;
    std::size_t size;
    simulated_stream home;
  };
  std::vector<held> blocks;
  for (int i = 0; i < 20000; ++i) {
    const std::size_t what = below(10);
    if (what < 4 && blocks.size() < 8) {
      const std::size_t size = (1 + below(9)) * mebibyte;
      const simulated_stream s = streams[below(4)];
      blocks.push_back({w.allocate(size, s), size, s});
    } else if (what < 7 && !blocks.empty()) {
      const held& h = blocks[below(blocks.size())];
      const simulated_stream s = streams[below(4)];
      w.device.order(h.home, s);
      use_too(w, h.p, h.size, s);
    } else if (!blocks.empty()) {
      const std::size_t which = below(blocks.size());
      const held h = blocks[which];
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(which));
      w.free(h.p, h.size, h.home);
    }
    if (what == 9) {
      w.device.run_some();
    }
  }
  for (const held& h : blocks) {
    w.free(h.p, h.size, h.home);
  }
  check_invariants(w.pool->stats());
  w.pool->trim();
  CHECK(w.held_bytes() == 0);
}

TEST_CASE("a block of a graph stays the graph's when another stream used it too") {
  world w{{}, relaxed()};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  w.device.begin_capture(a);
  void* const p = w.allocate(bytes, a);
  {
    const launched_graph graph{w, a};
    graph.launch(b);
    use_too(w, p, bytes, b);
    w.free(p, bytes, a);
    CHECK(w.pool->stats().captured == bytes);
    w.device.run_all();
    CHECK(w.turn(bytes, a) != p);
    CHECK(w.turn(bytes, b) != p);
    graph.launch(a);
  }
  w.device.run_all();
  CHECK(w.pool->stats().captured == 0);
  CHECK(w.turn(bytes, a) != p);  // only a fence shows the end of the other use
  w.pool->trim();
  CHECK(w.held_bytes() == 0);
}

TEST_CASE("a block that another stream used too serves its own capture no more") {
  world w{{}, relaxed()};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  w.device.begin_capture(a);
  void* const p = w.allocate(bytes, a);
  use_too(w, p, bytes, b);
  w.free(p, bytes, a);
  CHECK(w.turn(bytes, a) != p);
  CHECK(w.device.end_capture(a));
  w.pool->trim();
  CHECK(w.held_bytes() == 0);
}

TEST_CASE("a block used on two streams and freed in a capture leaves nothing behind") {
  world w{{}, relaxed()};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  void* const p = w.allocate(bytes, a);
  use_too(w, p, bytes, b);
  const std::size_t events = w.pool->stats().live_events;
  w.device.begin_capture(a);
  make_known(w, a);
  w.free(p, bytes, a);
  CHECK(w.device.end_capture(a));
  w.pool->trim();
  CHECK(w.held_bytes() == 0);
  void* const q = w.allocate(bytes, a);  // the event serves again
  use_too(w, q, bytes, b);
  CHECK(w.pool->stats().live_events == events);
  w.free(q, bytes, a);
}
