// Streams that are capturing a graph: requests are refused, and no capture is broken.
#include "world.hpp"

#include <thread>

namespace {

/// Lets the pool know that `s` captures, as any request on it does.
void make_known(world& w, simulated_stream s) {
  CHECK_THROWS_AS((void)w.pool->allocate(1, s), pagesift::capture_error);
}

/// A backend that makes its calls inside sections of relaxed capture mode.
simulated_options relaxed(std::size_t budget = gibibyte) {
  simulated_options options = with_budget(budget);
  options.relaxed_sections = true;
  return options;
}

}  // namespace

TEST_CASE("a request on a capturing stream is refused before anything is touched") {
  world w;
  const simulated_stream s = w.device.create_stream();
  w.turn(mebibyte, s);
  const pool_stats before = w.pool->stats();
  w.device.begin_capture(s);
  w.device.reset_calls();
  CHECK_THROWS_AS((void)w.pool->allocate(mebibyte, s), pagesift::capture_error);
  CHECK_THROWS_AS((void)w.pool->allocate(500 * mebibyte, s), pagesift::capture_error);
  CHECK(w.calls_with_effect() == 0);
  CHECK(w.pool->stats().hits == before.hits);
  CHECK(w.pool->stats().in_use == before.in_use);
  CHECK(w.device.end_capture(s));
  w.turn(mebibyte, s);
}

TEST_CASE("a block freed on a stream known to capture is put aside and the capture stays valid") {
  world w;
  w.show_two_streams();
  const simulated_stream s = w.device.create_stream();
  void* const p = w.allocate(40 * mebibyte, s);
  w.device.begin_capture(s);
  make_known(w, s);
  w.device.reset_calls();
  w.free(p, 40 * mebibyte, s);
  CHECK(w.calls_with_effect() == 0);
  CHECK(w.pool->stats().in_use == 0);
  CHECK(w.device.end_capture(s));
  CHECK(w.turn(40 * mebibyte, s) != p);  // its last use has no place in the stream's order
  w.pool->trim();
  CHECK(w.held_bytes() == 0);
}

TEST_CASE("while one stream captures others go on, and the capture stays valid") {
  world w{{}, relaxed()};
  const simulated_stream capturing = w.device.create_stream();
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  void* const p = w.allocate(40 * mebibyte, capturing);
  w.device.begin_capture(capturing);
  make_known(w, capturing);
  w.free(p, 40 * mebibyte, capturing);
  for (int i = 0; i < 10; ++i) {
    CHECK(w.turn(40 * mebibyte, a) != p);
    CHECK(w.turn(40 * mebibyte, b) != p);
    w.device.run_some();
  }
  w.pool->trim();
  w.pool->end_batch();
  w.pool->retire(a);
  w.pool->retire(capturing);
  CHECK(w.device.end_capture(capturing));
}

TEST_CASE("a shortage while a capture is known ends in the typed error, not in a fence") {
  world w{{}, relaxed(64 * mebibyte)};
  const simulated_stream capturing = w.device.create_stream();
  const simulated_stream other = w.device.create_stream();
  void* const p = w.allocate(60 * mebibyte, capturing);
  w.device.begin_capture(capturing);
  make_known(w, capturing);
  w.free(p, 60 * mebibyte, capturing);
  CHECK_THROWS_AS((void)w.pool->allocate(60 * mebibyte, other), pagesift::out_of_memory);
  CHECK(w.device.calls(simulated_call::fence) == 0);
  CHECK(w.device.capture_valid(capturing));
  CHECK(w.device.end_capture(capturing));
  w.turn(256, capturing);  // shows the pool that the capture is over
  w.turn(60 * mebibyte, other);
}

TEST_CASE("a shortage while a capture is known is met from pending events of other streams") {
  world w{{}, relaxed(64 * mebibyte)};
  const simulated_stream capturing = w.device.create_stream();
  const simulated_stream a = w.device.create_stream();
  w.turn(256, capturing);
  w.turn(50 * mebibyte, a);
  w.device.begin_capture(capturing);
  CHECK_THROWS_AS((void)w.pool->allocate(1, capturing), pagesift::capture_error);
  w.turn(60 * mebibyte, w.device.create_stream());
  CHECK(w.device.calls(simulated_call::synchronize) > 0);
  CHECK(w.device.end_capture(capturing));
}

TEST_CASE("a free that names no stream does not wait while a capture is known") {
  world w;
  const simulated_stream s = w.device.create_stream();
  void* const p = w.pool->allocate_sync(mebibyte);
  w.device.hand_out(p, mebibyte);
  w.device.begin_capture(s);
  CHECK_THROWS_AS((void)w.pool->allocate(1, s), pagesift::capture_error);
  w.device.hand_back(p, mebibyte);
  w.pool->deallocate_sync(p, mebibyte);
  CHECK(w.device.calls(simulated_call::fence) == 0);
  CHECK(w.device.end_capture(s));
}

TEST_CASE(
    "a capture on one thread's default stream is spared though another thread's captures not") {
  world w{{}, relaxed()};
  const simulated_stream mine = pagesift::simulated_per_thread_stream;
  const simulated_stream s = w.device.create_stream();
  w.turn(40 * mebibyte, s);
  w.device.begin_capture(mine);
  CHECK_THROWS_AS((void)w.pool->allocate(256, mine), pagesift::capture_error);
  std::thread{[&] { w.turn(256, mine); }}.join();
  w.pool->trim();
  CHECK(w.device.end_capture(mine));
}
