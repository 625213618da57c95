// Streams that come and go, named to a pool in every way there is: what it keeps for them, events
// and records, must stay bounded.
#include "capture_scene.hpp"

namespace {

constexpr std::size_t bytes = 64 * kibibyte;
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
    void* const p = w.allocate(bytes, s);
    w.device.order(s, home);
    w.free(p, bytes, home);
  });
}

TEST_CASE("streams that only give memory back leave behind neither events nor memory") {
  world w;
  const simulated_stream home = w.device.create_stream();
  with_many_streams(w, [&](simulated_stream s) {
    void* const p = w.allocate(bytes, home);
    w.device.order(home, s);
    w.free(p, bytes, s);
  });
}

TEST_CASE("streams that are bound leave behind neither events nor memory") {
  world w;
  with_many_streams(w, [&](simulated_stream s) {
    const auto on = w.pool->on(s);
    void* const p = on.allocate(bytes);
    w.device.hand_out(s, p, bytes);
    w.device.hand_back(s, p, bytes);
    on.deallocate(p, bytes);
  });
}

TEST_CASE("streams that use a block that lives on leave behind no events") {
  world w;
  const simulated_stream home = w.device.create_stream();
  void* const weights = w.allocate(bytes, home);
  with_many_streams(w, [&](simulated_stream s) {
    w.device.order(home, s);
    w.device.use(s, weights, bytes);
    w.pool->record_use(weights, bytes, s);
  });
  w.free(weights, bytes, home);
}

TEST_CASE("streams that capture a graph each leave behind neither events nor memory") {
  world w{{}, relaxed()};
  const simulated_stream home = w.device.create_stream();
  with_many_streams(w, [&](simulated_stream s) {
    w.device.begin_capture(s);
    w.turn(bytes, s);
    {
      const launched_graph graph{w, s};
      graph.launch(home);
    }
    w.turn(bytes, home);
  });
}
