// The peak of bytes in use: a bound from above, or exact on request.
#include "world.hpp"

#include <atomic>
#include <cstddef>
#include <thread>

namespace {

pool_options exact() {
  pool_options options;
  options.exact_peaks = true;
  return options;
}

/// Two streams with an idle block of `bytes` each, all of that in the peaks forgotten.
struct two_streams {
  two_streams(const pool_options& options, std::size_t bytes) : w{options} {
    void* const p = w.allocate(bytes, a);
    void* const q = w.allocate(bytes, b);
    w.free(p, bytes, a);
    w.free(q, bytes, b);
    w.pool->reset_peaks();
  }

  world w;
  simulated_stream a = w.device.create_stream();
  simulated_stream b = w.device.create_stream();
};

}  // namespace

TEST_CASE("one thread on one stream knows its peak, whatever lies between hits") {
  world w;
  const simulated_stream s = w.device.create_stream();
  void* const p = w.allocate(4 * mebibyte, s);
  void* const q = w.allocate(4 * mebibyte, s);
  w.free(p, 4 * mebibyte, s);
  w.free(q, 4 * mebibyte, s);
  w.pool->reset_peaks();
  CHECK(w.pool->stats().peak_in_use == 0);
  for (int i = 0; i < 100; ++i) {
    w.turn(4 * mebibyte, s);
  }
  CHECK(w.pool->stats().peak_in_use == 4 * mebibyte);
  void* const r = w.allocate(4 * mebibyte, s);
  w.turn(4 * mebibyte, s);
  CHECK(w.pool->stats().peak_in_use == 8 * mebibyte);
  w.free(r, 4 * mebibyte, s);
  CHECK(w.pool->stats().peak_in_use == 8 * mebibyte);
  w.pool->reset_peaks();
  CHECK(w.pool->stats().peak_in_use == 0);
}

TEST_CASE("peaks on two streams one after the other count as if at once, exact ones as they were") {
  {
    two_streams t{{}, 4 * mebibyte};
    t.w.turn(4 * mebibyte, t.a);
    t.w.turn(4 * mebibyte, t.b);
    CHECK(t.w.pool->stats().peak_in_use == 8 * mebibyte);
  }
  two_streams t{exact(), 4 * mebibyte};
  t.w.turn(4 * mebibyte, t.a);
  t.w.turn(4 * mebibyte, t.b);
  CHECK(t.w.pool->stats().peak_in_use == 4 * mebibyte);
}

TEST_CASE("the bound on the peak is never above what was held") {
  two_streams t{{}, 4 * mebibyte};
  for (int i = 0; i < 100; ++i) {  // one stream only hands out, the other only takes back
    void* const p = t.w.allocate(4 * mebibyte, t.a);
    t.w.device.order(t.a, t.b);
    t.w.free(p, 4 * mebibyte, t.b);
    t.w.device.order(t.b, t.a);
  }
  const pool_stats stats = t.w.pool->stats();
  check_invariants(stats);
  CHECK(stats.peak_in_use <= stats.peak_held);
  CHECK(stats.peak_in_use >= 4 * mebibyte);
}

TEST_CASE("exact peaks are those of all threads at one moment") {
  world w{exact()};
  const auto many_turns = [&] {
    const simulated_stream s = w.device.create_stream();
    for (int i = 0; i < 2000; ++i) {
      w.turn(2 * mebibyte, s);
    }
  };
  std::thread one{many_turns};
  std::thread other{many_turns};
  one.join();
  other.join();
  CHECK(w.pool->stats().peak_in_use >= 2 * mebibyte);
  CHECK(w.pool->stats().peak_in_use <= 4 * mebibyte);
  const simulated_stream s = w.device.create_stream();
  void* const p = w.allocate(6 * mebibyte, s);
  CHECK(w.pool->stats().peak_in_use == 6 * mebibyte);
  w.pool->reset_peaks();
  w.turn(256, s);
  CHECK(w.pool->stats().peak_in_use == 6 * mebibyte + 256);
  w.free(p, 6 * mebibyte, s);
  w.pool->reset_peaks();
  CHECK(w.pool->stats().peak_in_use == 0);
  void* const q = w.pool->allocate_sync(mebibyte);
  w.pool->deallocate_sync(q, mebibyte);
  CHECK(w.pool->stats().peak_in_use == mebibyte);
}
