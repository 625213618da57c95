// Graphs of the simulated device, and what its judge says of memory that they use.
#include <pagesift/backend/simulated.hpp>
#include <pagesift/core/bytes.hpp>

#include <doctest/doctest.h>

using pagesift::mebibyte;
using pagesift::simulated_call;
using pagesift::simulated_capture_mode;
using pagesift::simulated_graph;
using pagesift::simulated_stream;

namespace {

constexpr std::size_t block_bytes = 2 * mebibyte;

/// Two streams of which the first is capturing, and some memory.
struct capture_bench {
  explicit capture_bench(const pagesift::simulated_options& options = {}) : device{options} {
    REQUIRE(backend.acquire(block_bytes, p).ok());
    device.begin_capture(a, simulated_capture_mode::relaxed);
  }

  [[nodiscard]] std::size_t violations() const { return device.violations().size(); }

  /// Ends the capture, of a graph that uses the memory.
  [[nodiscard]] simulated_graph capture_a_turn() {
    device.hand_out(a, p, block_bytes);
    device.hand_back(a, p, block_bytes);
    return device.capture_graph(a);
  }

  pagesift::simulated_device device;
  pagesift::simulated_backend backend{device};
  simulated_stream a = device.create_stream();
  simulated_stream b = device.create_stream();
  void* p = nullptr;
};

void count_up(void* data) { ++*static_cast<int*>(data); }

}  // namespace

TEST_CASE("the position on a simulated capture is the node captured last") {
  capture_bench t;
  const auto empty = t.backend.look_at_capture(t.a);
  CHECK(empty.active);
  CHECK(empty.position.known);
  CHECK(empty.position.count == 0);
  t.device.use(t.a, t.p, 256);
  const auto first = t.backend.look_at_capture(t.a);
  t.device.use(t.a, t.p, 256);
  const auto second = t.backend.look_at_capture(t.a);
  CHECK(first.capture == empty.capture);
  REQUIRE(second.position.count == 1);
  pagesift::capture_position<pagesift::simulated_node> before;
  REQUIRE(t.backend.nodes_before(second.position.nodes[0], before).ok());
  REQUIRE(before.count == 1);
  CHECK(before.nodes[0] == first.position.nodes[0]);
  CHECK_FALSE(t.backend.look_at_capture(t.b).active);
  CHECK(t.device.end_capture(t.a));
}

TEST_CASE("a stream joins a simulated capture by an order, and a join has both nodes") {
  capture_bench t;
  t.device.use(t.a, t.p, 256);
  t.device.order(t.a, t.b);
  CHECK(t.backend.inspect(t.b).capturing);
  CHECK(t.backend.look_at_capture(t.b).capture == t.backend.look_at_capture(t.a).capture);
  char* const other = static_cast<char*>(t.p) + mebibyte;
  t.device.use(t.b, other, 256);
  t.device.use(t.a, t.p, 256);
  t.device.order(t.b, t.a);
  CHECK(t.backend.look_at_capture(t.a).position.count == 2);
  CHECK(t.device.end_capture(t.a));
  CHECK_FALSE(t.backend.inspect(t.b).capturing);
  CHECK(t.violations() == 0);
}

TEST_CASE("an order between captures, or from outside into one, breaks them") {
  capture_bench t;
  SUBCASE("from outside") { t.device.order(t.b, t.a); }
  SUBCASE("from another capture") {
    t.device.begin_capture(t.b, simulated_capture_mode::relaxed);
    t.device.order(t.b, t.a);
    CHECK_FALSE(t.device.end_capture(t.b));
  }
  CHECK_FALSE(t.backend.look_at_capture(t.a).active);
  CHECK_FALSE(t.device.end_capture(t.a));
}

TEST_CASE("the judge notices bytes that two unordered nodes use") {
  capture_bench t;
  t.device.order(t.a, t.b);
  t.device.use(t.a, t.p, 256);
  SUBCASE("by use") { t.device.use(t.b, t.p, 256); }
  SUBCASE("by hand-out") { t.device.hand_out(t.b, t.p, 256); }
  CHECK(t.violations() == 1);
}

TEST_CASE("the judge notices bytes of a graph in other hands until it is over") {
  capture_bench t;
  const simulated_graph graph = t.capture_a_turn();
  const auto replay = t.device.instantiate(graph);
  t.device.destroy(graph);
  const auto eager = [&] {
    const std::size_t before = t.violations();
    t.device.hand_out(t.b, t.p, block_bytes);
    t.device.hand_back(t.b, t.p, block_bytes);
    t.device.synchronize(t.b);
    return t.violations() - before;
  };
  SUBCASE("eagerly") {
    CHECK(eager() == 1);
    t.device.destroy(replay);
    CHECK(eager() == 0);
  }
  SUBCASE("while a launch has not run") {
    t.device.launch(replay, t.a);
    t.device.destroy(replay);
    CHECK(eager() >= 1);
    t.device.run_all();
    t.device.tell_of_endings();
    t.device.synchronize();
    CHECK(eager() == 0);
  }
  SUBCASE("in another capture") {
    t.device.begin_capture(t.b, simulated_capture_mode::relaxed);
    t.device.hand_out(t.b, t.p, block_bytes);
    CHECK(t.violations() == 1);
  }
  SUBCASE("released") {
    (void)t.backend.release(t.p, block_bytes);
    CHECK(t.violations() == 1);
  }
}

TEST_CASE("the judge notices eager uses that a captured hand-out does not come after") {
  capture_bench t;
  t.device.use(t.b, t.p, 256);
  SUBCASE("not complete") {
    t.device.hand_out(t.a, t.p, block_bytes);
    CHECK(t.violations() == 1);
  }
  SUBCASE("seen complete") {
    t.device.synchronize(t.b);
    t.device.hand_out(t.a, t.p, block_bytes);
    CHECK(t.violations() == 0);
  }
}

TEST_CASE("a replay is a use on the stream that it was launched on") {
  capture_bench t;
  const simulated_graph graph = t.capture_a_turn();
  const auto replay = t.device.instantiate(graph);
  t.device.destroy(graph);
  t.device.launch(replay, t.a);
  t.device.destroy(replay);
  (void)t.backend.release(t.p, block_bytes);
  CHECK(t.violations() == 2);  // a graph uses it, and the host has not seen the end of a use
}

TEST_CASE("a watcher is told once, after graph, executable and the last launch") {
  pagesift::simulated_options options;
  options.tells_late = true;
  capture_bench t{options};
  int told = 0;
  REQUIRE(t.backend.watch_graph(t.backend.look_at_capture(t.a).graph, count_up, &told).ok());
  const auto check_told = [&](int times) {
    t.device.tell_of_endings();
    CHECK(told == times);
  };
  const simulated_graph graph = t.capture_a_turn();
  const auto replay = t.device.instantiate(graph);
  t.device.destroy(graph);
  t.device.launch(replay, t.a);
  check_told(0);
  t.device.destroy(replay);
  check_told(0);
  t.device.run_all();
  CHECK(told == 0);
  check_told(1);
  check_told(1);
  CHECK(t.backend.release(t.p, block_bytes).ok());  // the host knows that the launch has run
  CHECK(t.violations() == 0);
}

TEST_CASE("a watcher of a broken capture, or one refused, is told too") {
  capture_bench t;
  int told = 0;
  REQUIRE(t.backend.watch_graph(t.backend.look_at_capture(t.a).graph, count_up, &told).ok());
  t.device.fail({simulated_call::watch_graph});
  CHECK_FALSE(t.backend.watch_graph(t.backend.look_at_capture(t.a).graph, count_up, &told).ok());
  CHECK(told == 1);
  t.device.order(t.b, t.a);
  CHECK_FALSE(t.device.end_capture(t.a));
  CHECK(told == 2);
}

TEST_CASE("planted faults end the calls about captures") {
  capture_bench t;
  t.device.use(t.a, t.p, 256);
  const auto seen = t.backend.look_at_capture(t.a);
  pagesift::capture_position<pagesift::simulated_node> before;
  t.device.fail({simulated_call::look_at_capture});
  t.device.fail({simulated_call::nodes_before});
  CHECK(t.backend.look_at_capture(t.a).result.code == 700);
  CHECK(t.backend.nodes_before(seen.position.nodes[0], before).code == 700);
  CHECK(t.device.end_capture(t.a));
}
