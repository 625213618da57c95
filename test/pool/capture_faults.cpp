// Every call of the backend fails once in requests and frees on a capturing stream.
#include "capture_scene.hpp"

namespace {

/// What a test does in a capture; the pool knows two other streams and holds some of their memory.
template <typename Operation>
void with_each_call_failing(const simulated_options& device, Operation operation) {
  for (std::uint64_t nth = 1; nth < 40; ++nth) {
    CAPTURE(nth);
    world w{{}, device};
    const simulated_stream s = w.device.create_stream();
    const simulated_stream other = w.device.create_stream();
    w.turn(12 * mebibyte, other);
    w.turn(256, w.device.create_stream());
    w.device.begin_capture(s);
    w.device.fail({{}, nth, false, pagesift::outcome::failed, 700});
    operation(w, s);
    w.device.clear_faults();
    check_invariants(w.pool->stats());
    CHECK(w.pool->stats().in_use == 0);
    w.turn(mebibyte, s);  // the next request works
    w.turn(mebibyte, other);
    CHECK(w.device.end_capture(s));
    CHECK(w.pool->stats().captured == 0);
  }
}

}  // namespace

TEST_CASE("a captured request that fails leaves everything as it was, and the capture valid") {
  int failures = 0;
  with_each_call_failing(relaxed(32 * mebibyte), [&](world& w, simulated_stream s) {
    void* p = nullptr;
    try {
      p = w.pool->allocate(24 * mebibyte, s);
    } catch (const pagesift::backend_error& e) {
      CHECK(e.code() == 700);
      ++failures;
    }
    w.device.clear_faults();
    if (p != nullptr) {
      w.device.hand_out(s, p, 24 * mebibyte);
      w.free(p, 24 * mebibyte, s);
    }
  });
  CHECK(failures > 3);
}

TEST_CASE("a free of a graph's block may fail to ask, and the block is the graph's all the same") {
  for (const simulated_call call : {simulated_call::inspect, simulated_call::look_at_capture}) {
    world w{{}, relaxed()};
    const simulated_stream s = w.device.create_stream();
    w.device.begin_capture(s);
    void* const p = w.allocate(mebibyte, s);
    w.device.fail({call, 1, true});
    w.free(p, mebibyte, s);
    w.device.clear_faults();
    CHECK(w.pool->stats().in_use == 0);
    CHECK(w.pool->stats().captured == mebibyte);
    CHECK(w.turn(mebibyte, s) != p);
    CHECK(w.turn(mebibyte, w.device.create_stream()) != p);
    w.check_no_violations();
    if (call == simulated_call::inspect) {
      CHECK(w.device.end_capture(s));
      CHECK(w.pool->stats().captured == 0);
    } else {  // a graph that cannot be told may name it: kept for good, which the end of w sees
      CHECK(w.device.end_capture(s));
      CHECK(w.pool->stats().captured == mebibyte);
      w.leaves_memory_behind();
    }
  }
}

TEST_CASE("a graph that outlives its pool keeps its memory mapped") {
  world w{on_mapped_memory(), relaxed()};
  const simulated_stream s = w.device.create_stream();
  w.device.begin_capture(s);
  w.turn(mebibyte, s);
  const pagesift::simulated_graph graph = w.device.capture_graph(s);
  const pagesift::simulated_executable replay = w.device.instantiate(graph);
  w.device.destroy(graph);
  w.pool.reset();
  CHECK(w.device.mapped_bytes() > 0);
  w.device.launch(replay, s);
  w.device.destroy(replay);
  w.device.run_all();  // nobody listens to the end any more
  w.check_no_violations();
  w.leaves_memory_behind();
}

TEST_CASE("the end of a pool waits for launches whose graphs are gone, and gives all back") {
  world w{{}, relaxed()};
  const simulated_stream s = w.device.create_stream();
  w.device.begin_capture(s);
  w.turn(mebibyte, s);
  {
    const launched_graph graph{w, s};
    graph.launch(s);
  }
  w.pool.reset();
  CHECK(w.held_bytes() == 0);
}

namespace {

/// A request that cannot be met, on a stream that captures in this mode, beside memory that is idle
/// behind work and memory in use.
void run_short_in_capture(const pool_options& options, simulated_capture_mode mode) {
  world w{options, relaxed(64 * mebibyte)};
  const simulated_stream s = w.device.create_stream();
  const simulated_stream other = w.device.create_stream();
  void* const kept = w.allocate(20 * mebibyte, other);
  w.turn(30 * mebibyte, other);
  w.device.begin_capture(s, mode);
  void* const own = w.allocate(mebibyte, s);
  const pool_stats before = w.pool->stats();
  CHECK_THROWS_AS((void)w.pool->allocate(60 * mebibyte, s), pagesift::out_of_memory);
  CHECK(w.pool->stats().in_use == before.in_use);
  CHECK(w.pool->stats().captured == before.captured);
  w.free(own, mebibyte, s);
  CHECK(w.turn(mebibyte, s) == own);
  w.turn(40 * mebibyte, s);  // in what the shortage has made free
  CHECK(w.device.end_capture(s));
  w.free(kept, 20 * mebibyte, other);
}

}  // namespace

TEST_CASE("a shortage on a capturing stream is out_of_memory, and the capture goes on") {
  for (const auto mode : {simulated_capture_mode::global, simulated_capture_mode::own_thread,
                          simulated_capture_mode::relaxed}) {
    for (const pool_options& options : {on_plain_memory(), on_mapped_memory()}) {
      run_short_in_capture(options, mode);
    }
  }
}
