// Streams that come and go, named to a pool in every way there is: what it keeps for them, events
// and records, must stay bounded.
#include "capture_scene.hpp"

namespace {

constexpr std::size_t block_bytes = 64 * kibibyte;
constexpr int many = 20000;

/// Has `turn(s)` name each of many short-lived streams to the pool.
template <typename Turn>
void with_many_streams(world& w, Turn&& turn) {
  for (int i = 0; i < many; ++i) {
    const simulated_stream s = w.device.create_stream();
    turn(s);
    w.device.run_some();
    w.device.run_some();  // the device keeps up, if not at once
    w.device.destroy_stream(s);
    if (i % 1000 == 0) {
      REQUIRE(w.device.violation_count() == 0);
      REQUIRE(w.device.live_events() <= 256);
      REQUIRE(w.pool->stats().streams <= 256);
    }
  }
  CHECK(w.pool->stats().peak_held <= 64 * mebibyte);
}

}  // namespace

TEST_CASE("streams that only take memory leave behind neither events nor memory") {
  world w;
  const simulated_stream home = w.device.create_stream();
  with_many_streams(w, [&](simulated_stream s) {
    w.device.order(home, s);
    void* const p = w.allocate(block_bytes, s);
    w.device.order(s, home);
    w.free(p, block_bytes, home);
  });
}

TEST_CASE("streams that only give memory back leave behind neither events nor memory") {
  world w;
  const simulated_stream home = w.device.create_stream();
  with_many_streams(w, [&](simulated_stream s) {
    void* const p = w.allocate(block_bytes, home);
    w.device.order(home, s);
    w.free(p, block_bytes, s);
  });
}

TEST_CASE("streams that are bound leave behind neither events nor memory") {
  world w;
  with_many_streams(w, [&](simulated_stream s) {
    const auto on = w.pool->on(s);
    void* const p = on.allocate(block_bytes);
    w.device.hand_out(s, p, block_bytes);
    w.device.hand_back(s, p, block_bytes);
    on.deallocate(p, block_bytes);
  });
}

TEST_CASE("streams that use a block that lives on leave behind no events") {
  world w;
  const simulated_stream home = w.device.create_stream();
  void* const weights = w.allocate(block_bytes, home);
  with_many_streams(w, [&](simulated_stream s) {
    w.device.order(home, s);
    w.device.use(s, weights, block_bytes);
    w.pool->record_use(weights, block_bytes, s);
  });
  w.free(weights, block_bytes, home);
}

TEST_CASE("streams that capture a graph each leave behind neither events nor memory") {
  world w{{}, relaxed()};
  const simulated_stream home = w.device.create_stream();
  with_many_streams(w, [&](simulated_stream s) {
    w.device.begin_capture(s);
    w.turn(block_bytes, s);
    {
      const launched_graph graph{w, s};
      graph.launch(home);
    }
    w.turn(block_bytes, home);
  });
}
