// Memory for graphs that are captured through a pool, and captures beside which a pool works.
#include "capture_scene.hpp"

#include <thread>

TEST_CASE("a block of a capture serves nobody else before its graph is over") {
  world w{{}, relaxed()};
  const simulated_stream s = w.device.create_stream();
  const simulated_stream other = w.device.create_stream();
  w.device.begin_capture(s);
  void* const p = w.turn(mebibyte, s);
  CHECK(w.pool->stats().captured == mebibyte);
  CHECK(w.pool->stats().in_use == 0);
  const launched_graph graph{w, s};
  for (int i = 0; i < 5; ++i) {
    CHECK(w.turn(mebibyte, s) != p);
    CHECK(w.turn(mebibyte, other) != p);
    graph.launch(s);
    graph.launch(other);
    w.device.run_some();
  }
  w.pool->trim();
  check_invariants(w.pool->stats());
}

TEST_CASE("the memory of a graph comes back when graph, executable and launches are over") {
  world w{{}, relaxed()};
  const simulated_stream s = w.device.create_stream();
  w.device.begin_capture(s);
  void* const p = w.turn(40 * mebibyte, s);
  const pagesift::simulated_graph graph = w.device.capture_graph(s);
  const pagesift::simulated_executable replay = w.device.instantiate(graph);
  w.device.destroy(graph);
  CHECK(w.pool->stats().captured == 40 * mebibyte);
  w.device.launch(replay, s);
  w.device.destroy(replay);
  CHECK(w.pool->stats().captured == 40 * mebibyte);  // the launch has not run
  w.device.run_all();
  CHECK(w.pool->stats().captured == 0);
  CHECK(w.turn(40 * mebibyte, w.device.create_stream()) == p);
  w.pool->trim();
  CHECK(w.held_bytes() == 0);
}

TEST_CASE("within a capture a block serves again behind its free") {
  world w;
  const simulated_stream s = w.device.create_stream();
  w.device.begin_capture(s, simulated_capture_mode::relaxed);
  void* const p = w.turn(mebibyte, s);
  void* const large = w.turn(40 * mebibyte, s);
  const std::size_t captured = w.pool->stats().captured;
  for (int i = 0; i < 50; ++i) {
    CHECK(w.turn(mebibyte, s) == p);
    CHECK(w.turn(38 * mebibyte, s) == large);
  }
  CHECK(w.pool->stats().captured == captured);
  CHECK(w.device.end_capture(s));
}

TEST_CASE("branches of a capture share no memory until they are joined") {
  world w;
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  w.device.begin_capture(a, simulated_capture_mode::relaxed);
  w.turn(256, a);
  w.device.order(a, b);  // b joins the capture
  void* const p = w.turn(mebibyte, a);
  void* const q = w.turn(mebibyte, b);
  CHECK(p != q);
  CHECK(w.turn(mebibyte, a) == p);
  CHECK(w.turn(mebibyte, b) == q);
  w.device.order(b, a);
  void* const first = w.allocate(mebibyte, a);
  void* const second = w.allocate(mebibyte, a);
  CHECK(first != second);
  CHECK((first == p || first == q));
  CHECK((second == p || second == q));
  w.free(first, mebibyte, a);
  w.free(second, mebibyte, a);
  const launched_graph graph{w, a};
  graph.launch(a);
}

TEST_CASE("an order in a capture that cannot be looked up is taken for none") {
  world w;
  const simulated_stream s = w.device.create_stream();
  w.device.begin_capture(s, simulated_capture_mode::relaxed);
  void* const p = w.turn(mebibyte, s);
  w.device.use(s, p, 256);
  w.device.fail({simulated_call::nodes_before, 1, true});
  CHECK(w.turn(mebibyte, s) != p);
  w.device.clear_faults();
  CHECK(w.device.end_capture(s));
}

TEST_CASE("a walk back through a long capture ends") {
  world w;
  const simulated_stream s = w.device.create_stream();
  w.device.begin_capture(s, simulated_capture_mode::relaxed);
  void* const p = w.turn(mebibyte, s);
  void* const small = w.allocate(256, s);
  for (int i = 0; i < 1000; ++i) {
    w.device.use(s, small, 256);
  }
  w.device.reset_calls();
  void* const q = w.turn(mebibyte, s);
  CHECK(q != p);
  CHECK(w.device.calls(simulated_call::nodes_before) == 512);
  w.free(small, 256, s);
  CHECK(w.device.end_capture(s));
}

TEST_CASE("a block in use when its graph ends is freed as any other") {
  world w;
  const simulated_stream s = w.device.create_stream();
  w.device.begin_capture(s, simulated_capture_mode::relaxed);
  void* const p = w.allocate(mebibyte, s);
  CHECK(w.pool->stats().captured == mebibyte);
  CHECK(w.device.end_capture(s));
  CHECK(w.pool->stats().captured == 0);
  CHECK(w.pool->stats().in_use == mebibyte);
  w.device.use(s, p, mebibyte);
  w.free(p, mebibyte, s);
  CHECK(w.turn(mebibyte, s) == p);
}

TEST_CASE("a block freed outside of its capture waits for that stream too") {
  world w;
  w.show_two_streams();
  const simulated_stream s = w.device.create_stream();
  const simulated_stream reader = w.device.create_stream();
  w.device.begin_capture(s, simulated_capture_mode::relaxed);
  void* const p = w.allocate(40 * mebibyte, s);
  {
    const launched_graph graph{w, s};
    graph.launch(reader);
    w.device.use(reader, p, 40 * mebibyte);
    w.free(p, 40 * mebibyte, reader);
    CHECK(w.pool->stats().captured == 40 * mebibyte);
  }
  w.device.run_all();
  CHECK(w.pool->stats().captured == 0);
  CHECK(w.turn(40 * mebibyte, s) != p);
  CHECK(w.turn(40 * mebibyte, reader) == p);
}

TEST_CASE("a stream that a parked block waits for is not forgotten") {
  world w;
  const simulated_stream s = w.device.create_stream();
  w.device.begin_capture(s, simulated_capture_mode::relaxed);
  void* const p = w.allocate(mebibyte, s);
  const pagesift::simulated_graph graph = w.device.capture_graph(s);
  const simulated_stream reader = w.device.create_stream();
  const pagesift::simulated_gate gate = w.device.gate(reader);
  w.free(p, mebibyte, reader);
  w.device.destroy_stream(reader);
  for (int i = 0; i < 300; ++i) {  // enough for finished streams to be looked for
    const simulated_stream passing = w.device.create_stream();
    w.turn(256, passing);
    w.device.run_all();
    w.device.destroy_stream(passing);
  }
  w.device.destroy(graph);
  CHECK(w.turn(mebibyte, s) != p);
  w.device.open(gate);
}

TEST_CASE("a block freed in another capture waits for both graphs") {
  for (const bool home_first : {true, false}) {
    world w;
    const simulated_stream a = w.device.create_stream();
    const simulated_stream b = w.device.create_stream();
    w.device.begin_capture(a, simulated_capture_mode::relaxed);
    w.device.begin_capture(b, simulated_capture_mode::relaxed);
    void* const p = w.allocate(mebibyte, a);
    w.free(p, mebibyte, b);
    const pagesift::simulated_graph first = w.device.capture_graph(home_first ? a : b);
    const pagesift::simulated_graph second = w.device.capture_graph(home_first ? b : a);
    w.device.destroy(first);
    CHECK(w.pool->stats().captured == mebibyte);
    CHECK(w.turn(mebibyte, a) != p);
    w.device.destroy(second);
    CHECK(w.pool->stats().captured == 0);
    w.pool->trim();
    CHECK(w.held_bytes() == 0);
  }
}

TEST_CASE("a block from before a capture and freed in it waits for the graph and for a fence") {
  world w;
  w.show_two_streams();
  const simulated_stream s = w.device.create_stream();
  void* const p = w.allocate(40 * mebibyte, s);
  w.device.begin_capture(s, simulated_capture_mode::relaxed);
  make_known(w, s);
  w.device.use(s, p, 256);
  w.free(p, 40 * mebibyte, s);
  const std::size_t captured = w.pool->stats().captured;
  CHECK(captured > 40 * mebibyte);
  void* const q = w.turn(40 * mebibyte, s);  // in the capture, but the old use has no place in it
  CHECK(q != p);
  {
    const launched_graph graph{w, s};
    CHECK(w.turn(40 * mebibyte, s) != p);
    w.pool->trim();
    CHECK(w.turn(40 * mebibyte, s) != p);
  }
  CHECK(w.pool->stats().captured == 0);
  w.pool->trim();
  CHECK(w.held_bytes() == 0);
}

TEST_CASE("what a stream did before its capture is complete only after a fence") {
  world w;
  const simulated_stream s = w.device.create_stream();
  void* const p = w.allocate(40 * mebibyte, s);
  w.device.begin_capture(s, simulated_capture_mode::relaxed);
  make_known(w, s);
  w.free(p, 40 * mebibyte, s);
  CHECK(w.device.end_capture(s));
  CHECK(w.pool->stats().captured == 0);
  CHECK(w.turn(40 * mebibyte, w.device.create_stream()) != p);
  w.pool->trim();
  CHECK(w.held_bytes() == 0);
}

TEST_CASE("frees ask nothing again when the graph of the only known capture is over") {
  world w;
  const simulated_stream s = w.device.create_stream();
  const simulated_stream other = w.device.create_stream();
  w.turn(256, other);
  w.device.begin_capture(s, simulated_capture_mode::relaxed);
  make_known(w, s);
  const auto questions = [&] {
    w.device.reset_calls();
    w.turn(256, other);
    return w.device.calls(simulated_call::inspect);
  };
  CHECK(questions() == 2);
  const pagesift::simulated_graph graph = w.device.capture_graph(s);
  CHECK(questions() == 2);  // nobody has looked at the stream since
  w.device.destroy(graph);
  w.device.destroy_stream(s);
  (void)w.pool->stats();
  CHECK(questions() == 1);
}

TEST_CASE("an executable that is updated keeps the memory of the graph it launches") {
  world w;
  const simulated_stream s = w.device.create_stream();
  w.device.begin_capture(s, simulated_capture_mode::relaxed);
  w.turn(mebibyte, s);
  const pagesift::simulated_graph first = w.device.capture_graph(s);
  w.device.begin_capture(s, simulated_capture_mode::relaxed);
  w.turn(2 * mebibyte, s);
  const pagesift::simulated_graph second = w.device.capture_graph(s);
  const pagesift::simulated_executable replay = w.device.instantiate(first);
  w.device.destroy(first);
  CHECK(w.pool->stats().captured == 3 * mebibyte);
  w.device.update(replay, second);
  w.device.destroy(second);
  CHECK(w.pool->stats().captured == 2 * mebibyte);
  w.device.launch(replay, s);
  w.device.destroy(replay);
  w.device.run_all();
  CHECK(w.pool->stats().captured == 0);
}

TEST_CASE("an end that is told late is noticed by whoever needs the memory") {
  simulated_options options = relaxed(64 * mebibyte);
  options.tells_late = true;
  world w{{}, options};
  const simulated_stream s = w.device.create_stream();
  w.device.begin_capture(s);
  w.turn(60 * mebibyte, s);
  CHECK(w.device.end_capture(s));
  CHECK_THROWS_AS((void)w.pool->allocate(60 * mebibyte, s), pagesift::out_of_memory);
  w.device.tell_of_endings();
  w.turn(60 * mebibyte, s);
}

namespace {

/// Has a request served with the memory of a graph that ends in the shortage callback, which
/// returns `answer`. Returns the fences made.
std::uint64_t serve_from_callback(bool answer) {
  std::optional<launched_graph> graph;
  pool_options options;
  options.on_shortage = [&graph, answer](std::size_t) {
    graph.reset();
    return answer;
  };
  world w{options, relaxed(64 * mebibyte)};
  const simulated_stream s = w.device.create_stream();
  w.device.begin_capture(s);
  w.turn(60 * mebibyte, s);
  graph.emplace(w, s);
  w.turn(60 * mebibyte, s);
  return w.device.calls(simulated_call::fence);
}

}  // namespace

TEST_CASE("memory of a graph that ends in the shortage callback serves the request") {
  CHECK(serve_from_callback(true) == 1);  // before the callback
}

TEST_CASE("a shortage waits for the last launch of a graph that is gone") {
  world w{{}, relaxed(64 * mebibyte)};
  const simulated_stream s = w.device.create_stream();
  w.device.begin_capture(s);
  w.turn(60 * mebibyte, s);
  {
    const launched_graph graph{w, s};
    graph.launch(s);
  }
  w.turn(60 * mebibyte, s);
}

TEST_CASE("large blocks of a graph keep their slack in a shortage") {
  world w{{}, relaxed(64 * mebibyte)};
  const simulated_stream s = w.device.create_stream();
  w.device.begin_capture(s);
  void* const p = w.turn(60 * mebibyte, s);
  void* const q = w.allocate(40 * mebibyte, s);
  CHECK(q == p);
  const launched_graph graph{w, s};
  CHECK_THROWS_AS((void)w.pool->allocate(16 * mebibyte, w.device.create_stream()),
                  pagesift::out_of_memory);
  CHECK(w.pool->stats().captured >= 60 * mebibyte);
  w.free(q, 40 * mebibyte, s);
}

TEST_CASE("an invalidated capture gets a typed error and leaves nothing behind") {
  world w;
  const simulated_stream s = w.device.create_stream();
  const pagesift::simulated_event event = unrelated_event(w);
  w.device.begin_capture(s, simulated_capture_mode::relaxed);
  void* const p = w.pool->allocate(mebibyte, s);
  (void)w.pool->backend().wait(s, event);
  REQUIRE_FALSE(w.device.capture_valid(s));
  CHECK_THROWS_AS((void)w.pool->allocate(mebibyte, s), pagesift::capture_error);
  w.pool->deallocate(p, mebibyte, s);
  CHECK_FALSE(w.device.end_capture(s));
  CHECK(w.pool->stats().captured == 0);
  CHECK(w.pool->backend().destroy_event(event).ok());
  w.pool->trim();
  CHECK(w.held_bytes() == 0);
}

TEST_CASE(
    "a block of before a capture that was invalidated in it waits for a fence, on no stream") {
  world w;
  const simulated_stream s = w.device.create_stream();
  const pagesift::simulated_event event = unrelated_event(w);
  void* const p = w.allocate(40 * mebibyte, s);
  w.device.begin_capture(s, simulated_capture_mode::relaxed);
  make_known(w, s);
  (void)w.pool->backend().wait(s, event);
  REQUIRE_FALSE(w.device.capture_valid(s));
  const std::size_t streams = w.pool->stats().streams;
  w.free(p, 40 * mebibyte, s);
  CHECK(w.pool->stats().streams == streams);
  CHECK_FALSE(w.device.end_capture(s));
  CHECK(w.turn(40 * mebibyte, s) != p);
  w.pool->trim();
  CHECK(w.held_bytes() == 0);
  CHECK(w.pool->backend().destroy_event(event).ok());
}

TEST_CASE("while one stream captures others hit, and the capture stays valid") {
  world w{{}, relaxed()};
  const simulated_stream capturing = w.device.create_stream();
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  w.turn(40 * mebibyte, a);
  w.turn(40 * mebibyte, b);
  w.device.begin_capture(capturing);
  void* const p = w.turn(40 * mebibyte, capturing);
  for (int i = 0; i < 10; ++i) {
    CHECK(w.turn(40 * mebibyte, a) != p);
    CHECK(w.turn(40 * mebibyte, b) != p);
    w.device.run_some();
  }
  w.pool->trim();
  w.pool->end_batch();
  w.pool->retire(a);
  w.pool->retire(capturing);
  void* const q = w.pool->allocate_sync(mebibyte);
  w.pool->deallocate_sync(q, mebibyte);
  CHECK(w.device.end_capture(capturing));
}

TEST_CASE("a shortage beside a capture is met with a fence, and the capture stays valid") {
  world w{{}, relaxed(40 * mebibyte)};
  const simulated_stream capturing = w.device.create_stream();
  const simulated_stream a = w.device.create_stream();
  w.device.begin_capture(capturing);
  w.turn(20 * mebibyte, a);  // no event covers it
  w.device.destroy_stream(a);
  w.turn(34 * mebibyte, capturing);
  CHECK(w.device.calls(simulated_call::fence) > 0);
  CHECK(w.device.end_capture(capturing));
}

TEST_CASE("other threads may miss, trim and run short beside captures of every mode") {
  for (const auto mode : {simulated_capture_mode::global, simulated_capture_mode::own_thread,
                          simulated_capture_mode::relaxed}) {
    world w{{}, relaxed(64 * mebibyte)};
    const simulated_stream s = w.device.create_stream();
    w.device.begin_capture(s, mode);
    w.turn(mebibyte, s);
    std::thread{[&] {
      const simulated_stream other = w.device.create_stream();
      w.turn(30 * mebibyte, other);
      w.turn(50 * mebibyte, w.device.create_stream());
      CHECK_THROWS_AS((void)w.pool->allocate(63 * mebibyte, other), pagesift::out_of_memory);
      w.pool->trim();
    }}.join();
    w.turn(mebibyte, s);
    CHECK(w.device.end_capture(s));
  }
}

TEST_CASE("a capture on one thread's default stream is told from another thread's stream") {
  world w{{}, relaxed()};
  const simulated_stream mine = pagesift::simulated_per_thread_stream;
  w.device.begin_capture(mine);
  void* const p = w.turn(256, mine);
  std::thread{[&] {
    CHECK(w.turn(256, mine) != p);
    CHECK(w.turn(256, mine) != p);
  }}.join();
  CHECK(w.turn(256, mine) == p);
  w.pool->trim();
  CHECK(w.device.end_capture(mine));
}

TEST_CASE("a pool that ends gives back what two captures had, whose graphs ended unnoticed") {
  world w{{}, relaxed()};
  const simulated_stream first = w.device.create_stream();
  const simulated_stream second = w.device.create_stream();
  w.device.begin_capture(first);
  void* const p = w.allocate(mebibyte, first);
  w.device.begin_capture(second);
  make_known(w, second);
  {
    const launched_graph one{w, first};
    w.free(p, mebibyte, second);
    const launched_graph other{w, second};
  }
  w.pool.reset();
  CHECK(w.device.acquired_bytes() + w.device.physical_bytes() == 0);
}

TEST_CASE("a free that asks beside a capture takes no other stream for its own") {
  world w{{}, relaxed()};
  const simulated_stream captured = w.device.create_stream();
  const simulated_stream owner = w.device.create_stream();
  void* const p = w.allocate(256, owner);
  w.device.begin_capture(captured);
  make_known(w, captured);
  simulated_stream last;
  for (int i = 0; i < 4; ++i) {  // more streams than a thread remembers
    last = w.device.create_stream();
    w.turn(kibibyte, last);
  }
  w.device.order(owner, last);
  bool listening = true;
  w.device.before_calls([&](simulated_call call) {  // a tool that uses the pool in its callback
    if (call == simulated_call::inspect && listening) {
      listening = false;
      w.turn(kibibyte, owner);
    }
  });
  w.free(p, 256, last);
  w.device.before_calls({});
  CHECK_FALSE(listening);
  CHECK(w.turn(256, owner) != p);
  CHECK(w.device.end_capture(captured));
}

TEST_CASE("a shortage and the destructor wait a little for word of graphs that are over") {
  simulated_options options = relaxed(64 * mebibyte);
  options.tells_at_rest = true;
  world w{{}, options};
  const simulated_stream s = w.device.create_stream();
  for (int i = 0; i < 2; ++i) {  // the second time it is the destructor that needs the memory
    w.device.begin_capture(s);
    w.turn(60 * mebibyte, s);
    CHECK(w.device.end_capture(s));
  }
}

TEST_CASE("memory of a graph that ends in a shortage callback serves, whatever that returns") {
  (void)serve_from_callback(false);
}

TEST_CASE("what trim waits for may be the last launch of a graph, whose memory goes as well") {
  world w{{}, relaxed()};
  const simulated_stream s = w.device.create_stream();
  w.device.begin_capture(s);
  w.turn(40 * mebibyte, s);
  {
    const launched_graph graph{w, s};
    graph.launch(s);
  }
  w.turn(20 * mebibyte, s);
  w.pool->trim();
  CHECK(w.held_bytes() == 0);
}

TEST_CASE("a graph's block that was freed on a stream which is gone serves all without a fence") {
  world w{{}, relaxed(64 * mebibyte)};
  const simulated_stream s = w.device.create_stream();
  const simulated_stream other = w.device.create_stream();
  w.turn(256, other);
  w.device.begin_capture(s);
  void* const p = w.allocate(40 * mebibyte, s);
  const pagesift::simulated_graph graph = w.device.capture_graph(s);
  w.device.use(s, p, 40 * mebibyte);
  w.free(p, 40 * mebibyte, s);
  w.pool->retire(s);
  w.device.destroy_stream(s);
  w.device.run_all();
  w.device.destroy(graph);
  CHECK(w.turn(40 * mebibyte, other) == p);
  CHECK(w.pool->stats().fences == 0);
}

TEST_CASE("a stream that was retired in its capture is forgotten when the graph is over") {
  world w{{}, relaxed()};
  const simulated_stream s = w.device.create_stream();
  const simulated_stream other = w.device.create_stream();
  w.turn(256, other);
  w.device.begin_capture(s);
  make_known(w, s);
  w.pool->retire(s);
  CHECK(w.device.end_capture(s));
  w.device.destroy_stream(s);
  (void)w.pool->stats();
  w.device.reset_calls();
  w.turn(256, other);
  CHECK(w.device.calls(simulated_call::inspect) == 1);
}

TEST_CASE("a capture that only uses and retirements were told of costs later calls nothing") {
  world w{{}, relaxed()};
  const simulated_stream s = w.device.create_stream();
  const simulated_stream other = w.device.create_stream();
  w.turn(256, other);
  void* const p = w.allocate(256, other);
  w.device.begin_capture(s);
  w.pool->retire(s);
  CHECK_THROWS_AS(w.pool->record_use(p, 256, s), pagesift::capture_error);
  CHECK(w.device.end_capture(s));
  w.device.destroy_stream(s);
  w.free(p, 256, other);
  w.device.reset_calls();
  w.turn(256, other);
  CHECK(w.device.calls(simulated_call::inspect) == 1);
}

TEST_CASE("an invalidated capture that a request met costs later calls nothing") {
  world w{{}, relaxed()};
  const simulated_stream s = w.device.create_stream();
  const simulated_stream other = w.device.create_stream();
  w.turn(256, other);
  const pagesift::simulated_event event = unrelated_event(w);
  w.device.begin_capture(s);
  (void)w.pool->backend().wait(s, event);
  CHECK_THROWS_AS((void)w.pool->allocate(256, s), pagesift::capture_error);
  CHECK_FALSE(w.device.end_capture(s));
  CHECK(w.pool->backend().destroy_event(event).ok());
  w.device.destroy_stream(s);
  w.device.reset_calls();
  w.turn(256, other);
  CHECK(w.device.calls(simulated_call::inspect) == 1);
}

TEST_CASE("the end of a stream's earlier graph does not hide that it captures again") {
  world w{{}, relaxed()};
  const simulated_stream s = w.device.create_stream();
  void* const p = w.allocate(40 * mebibyte, s);
  w.device.begin_capture(s);
  make_known(w, s);
  CHECK(w.device.end_capture(s));
  w.device.begin_capture(s);
  void* const q = w.allocate(256, s);  // the earlier graph's memory is given back here too
  w.device.use(s, p, 256);
  w.free(p, 40 * mebibyte, s);
  CHECK(w.pool->stats().captured > 40 * mebibyte);
  w.free(q, 256, s);
  const launched_graph graph{w, s};
  CHECK(w.turn(40 * mebibyte, s) != p);
}
