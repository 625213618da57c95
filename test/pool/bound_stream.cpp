// A pool with a stream named once and for all.
#include "world.hpp"

#include <cstdint>
#include <thread>

namespace {

using bound = pagesift::bound_stream<simulated_pool>;

/// A block allocated, used and freed through `on`; its address.
void* turn(world& w, const bound& on, std::size_t bytes) {
  void* const p = on.allocate(bytes);
  w.device.hand_out(on.stream(), p, bytes);
  w.device.use(on.stream(), p, bytes);
  w.device.hand_back(on.stream(), p, bytes);
  on.deallocate(p, bytes);
  return p;
}

void pairs(const bound& on, int count) {
  for (int i = 0; i < count; ++i) {
    on.deallocate(on.allocate(4096), 4096);
  }
}

}  // namespace

TEST_CASE("a bound stream asks once a pair, whether it captures; a trusted one asks nothing") {
  for (const bool trusting : {false, true}) {
    world w{trusting ? trusted() : pool_options{}};
    w.show_two_streams();
    const bound on = w.pool->on(w.device.create_stream());
    pairs(on, 1);
    w.device.reset_calls();
    pairs(on, 1000);
    CHECK(w.device.calls(simulated_call::inspect) == (trusting ? 0 : 1000));
    CHECK(w.calls_with_effect() == 0);
  }
}

TEST_CASE("a bound stream names its pool and stream and gives what the pool would") {
  world w;
  const simulated_stream s = w.device.create_stream();
  const bound on = w.pool->on(s);
  CHECK(&on.pool() == &*w.pool);
  CHECK(on.stream() == s);
  void* const p = w.turn(5000, s);
  CHECK(turn(w, on, 5000) == p);
  CHECK(w.turn(5000, s) == p);
  void* const q = on.allocate(100, 4096);
  CHECK(aligned(q, 4096));
  on.deallocate(q, 100);
  CHECK_THROWS_AS((void)on.allocate(100, 3), pagesift::invalid_alignment);
  CHECK_THROWS_AS((void)on.allocate(static_cast<std::size_t>(-1)), pagesift::size_overflow);
  on.deallocate(nullptr, 0);
  CHECK(w.pool->stats().rejected_frees == 0);
}

TEST_CASE("a capturing stream cannot be bound, and a bound one that captures gets graph memory") {
  world w;
  const simulated_stream s = w.device.create_stream();
  const bound on = w.pool->on(s);
  turn(w, on, 4096);
  w.device.begin_capture(s);
  CHECK_THROWS_AS((void)w.pool->on(s), pagesift::capture_error);
  turn(w, on, 4096);
  CHECK(w.pool->stats().captured == 4096);
  CHECK(w.device.end_capture(s));
  CHECK(w.pool->stats().captured == 0);
  turn(w, on, 4096);
}

TEST_CASE("a stream that cannot be asked cannot be bound, and a bound request says so") {
  world w;
  const simulated_stream s = w.device.create_stream();
  w.device.fail({simulated_call::inspect});
  CHECK_THROWS_AS((void)w.pool->on(s), pagesift::backend_error);
  const bound on = w.pool->on(s);
  turn(w, on, 4096);
  w.device.clear_faults();
  w.device.fail({simulated_call::inspect, 1, true});
  CHECK_THROWS_AS((void)on.allocate(4096), pagesift::backend_error);
  w.device.clear_faults();
  turn(w, on, 4096);
}

TEST_CASE("a bound stream serves threads other than the one that bound it") {
  for (const bool trusting : {false, true}) {
    world w{trusting ? trusted() : pool_options{}};
    const simulated_stream s = w.device.create_stream();
    const bound on = w.pool->on(s);
    void* const p = turn(w, on, 5000);
    std::thread{[&] {
      CHECK(turn(w, on, 5000) == p);
      CHECK(turn(w, on, 5000) == p);
    }}.join();
    void* const q = on.allocate(5000);
    w.device.hand_out(s, q, 5000);
    std::thread{[&] {
      w.device.hand_back(s, q, 5000);
      on.deallocate(q, 5000);
    }}.join();
    CHECK(turn(w, on, 5000) == p);
    CHECK(w.pool->stats().in_use == 0);
  }
}

TEST_CASE("a bound stream whose record was swept goes on") {
  world w;
  const simulated_stream s = w.device.create_stream();
  const bound on = w.pool->on(s);
  turn(w, on, 5000);
  w.pool->retire(s);
  for (int i = 0; i < 200; ++i) {  // so many streams that finished ones are forgotten
    const simulated_stream other = w.device.create_stream();
    w.turn(256, other);
    w.device.run_all();
    w.device.destroy_stream(other);
  }
  (void)w.device.gate(s);
  w.device.open_all_gates();
  turn(w, on, 5000);
  CHECK(turn(w, on, 5000) == turn(w, on, 5000));
}

TEST_CASE("two streams bound to one pool do not share a block too early") {
  for (const bool trusting : {false, true}) {
    world w{trusting ? trusted() : pool_options{}};
    const bound one = w.pool->on(w.device.create_stream());
    const bound other = w.pool->on(w.device.create_stream());
    const auto gate = w.device.gate(one.stream());
    void* const p = turn(w, one, mebibyte);
    CHECK(turn(w, other, mebibyte) != p);
    w.device.open(gate);
    void* const q = other.allocate(mebibyte);
    w.device.hand_out(other.stream(), q, mebibyte);
    w.device.order(other.stream(), one.stream());
    w.device.hand_back(one.stream(), q, mebibyte);
    one.deallocate(q, mebibyte);  // handed out by the other
    CHECK(turn(w, other, mebibyte) != q);
  }
}
