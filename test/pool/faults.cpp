// Every backend call of every operation fails once, in its turn; nothing may be lost by it.
#include "world.hpp"

#include <functional>

namespace {

/// A pool with memory in use, idle and pending on two streams.
struct scene {
  explicit scene(bool page_aligned) : w{{}, options(page_aligned)} {
    w.turn(256, a);
    w.turn(5000, b);
    kept = w.allocate(kept_bytes, a);
    w.turn(40 * mebibyte, a);
  }

  /// A request whose block is given back at once.
  void request(std::size_t bytes, simulated_stream s) { w.free(w.allocate(bytes, s), bytes, s); }

  void free_kept(simulated_stream s) {
    w.device.order(a, s);
    w.free(kept, kept_bytes, s);
    kept = nullptr;
  }

  void free_kept_without_stream() {
    w.device.hand_back(kept, kept_bytes);
    w.pool->deallocate_sync(kept, kept_bytes);
    kept = nullptr;
  }

  void request_without_stream() {
    void* const p = w.pool->allocate_sync(40 * mebibyte);
    w.device.hand_out(p, 40 * mebibyte);
    w.device.hand_back(p, 40 * mebibyte);
    w.pool->deallocate_sync(p, 40 * mebibyte);
  }

  static simulated_options options(bool page_aligned) {
    simulated_options options = with_budget(80 * mebibyte);
    options.page_aligned = page_aligned;
    return options;
  }

  static constexpr std::size_t kept_bytes = 10 * mebibyte;

  world w;
  simulated_stream a = w.device.create_stream();
  simulated_stream b = w.device.create_stream();
  void* kept = nullptr;
};

using operation = std::function<void(scene&)>;

/// Runs `act` with its n-th backend call ending as told. Returns whether it made so many calls.
bool fails_cleanly(const operation& act, std::uint64_t n, pagesift::simulated_fault fault,
                   bool page_aligned, bool work_done) {
  scene t{page_aligned};
  if (work_done) {
    t.w.device.run_all();
  }
  t.w.device.reset_calls();
  fault.nth = n;
  t.w.device.fail(fault);
  try {
    act(t);
  } catch (const pagesift::backend_error&) {
  } catch (const pagesift::out_of_memory&) {
  }
  t.w.device.clear_faults();
  const bool reached = t.w.calls_with_effect() + t.w.device.calls(simulated_call::inspect) +
                           t.w.device.calls(simulated_call::memory) >=
                       n;

  const pool_stats stats = t.w.pool->stats();
  check_invariants(stats);
  CHECK(blocks_in_use(stats) == (t.kept == nullptr ? 0 : 1));
  CHECK(stats.held == t.w.held_bytes());
  CHECK(stats.live_events == t.w.device.live_events());

  t.request(20 * mebibyte, t.b);
  if (t.kept != nullptr) {
    t.free_kept(t.a);
  }
  t.w.pool->trim();
  CHECK(t.w.held_bytes() == 0);
  return reached;
}

void sweep(const operation& act, const pagesift::simulated_fault& fault) {
  for (const bool page_aligned : {true, false}) {
    for (const bool work_done : {true, false}) {
      std::uint64_t n = 1;
      while (fails_cleanly(act, n, fault, page_aligned, work_done)) {
        ++n;
      }
      CHECK(n > 1);
    }
  }
}

void sweep(const operation& act) {
  sweep(act, {{}, 1, false, pagesift::outcome::failed, 700});
  sweep(act, {{}, 1, false, pagesift::outcome::shortage, 2});
}

}  // namespace

TEST_CASE("any call may fail in a request that the stream's own cache serves") {
  sweep([](scene& t) { t.request(5000, t.b); });
}

TEST_CASE("any call may fail in a request that another stream's memory serves") {
  sweep([](scene& t) { t.request(40 * mebibyte, t.b); });
}

TEST_CASE("any call may fail in a request that takes new memory") {
  sweep([](scene& t) { t.request(20 * mebibyte, t.b); });
}

TEST_CASE("any call may fail in a request that needs nearly all there is") {
  sweep([](scene& t) { t.request(66 * mebibyte, t.b); });
}

TEST_CASE("any call may fail in a request that cannot be met") {
  sweep([](scene& t) { t.request(78 * mebibyte, t.b); });
}

TEST_CASE("any call may fail in a request that names no stream") {
  sweep([](scene& t) { t.request_without_stream(); });
}

TEST_CASE("any call may fail in a free that names no stream") {
  sweep([](scene& t) { t.free_kept_without_stream(); });
}

TEST_CASE("any call may fail where a stream is bound and serves a request") {
  for (const std::size_t bytes : {std::size_t{5000}, 40 * mebibyte, 20 * mebibyte}) {
    sweep([bytes](scene& t) {
      const auto on = t.w.pool->on(t.b);
      void* const p = on.allocate(bytes);
      t.w.device.hand_out(t.b, p, bytes);
      t.w.device.hand_back(t.b, p, bytes);
      on.deallocate(p, bytes);
    });
  }
}

TEST_CASE("any call may fail in a free on another stream than the block was handed out on") {
  sweep([](scene& t) {
    t.w.device.order(t.a, t.b);
    t.w.free(t.kept, scene::kept_bytes, t.b);
    t.kept = nullptr;
  });
}

TEST_CASE("any call may fail in a trim") {
  sweep([](scene& t) { t.w.pool->trim(); });
}

TEST_CASE("any call may fail at the end of a batch") {
  sweep([](scene& t) {
    t.w.pool->end_batch();
    t.w.pool->end_batch();
  });
}

TEST_CASE("any call may fail when a stream is retired") {
  sweep([](scene& t) { t.w.pool->retire(t.a); });
}

TEST_CASE("memory that is not aligned to pages and cannot be released at once is released later") {
  simulated_options options;
  options.page_aligned = false;
  world w{on_plain_memory(), options};
  w.device.fail({simulated_call::release, 1, false, pagesift::outcome::failed, 700});
  CHECK_THROWS_AS((void)w.pool->allocate(256, simulated_stream{}), pagesift::backend_error);
  CHECK(w.pool->stats().held == w.held_bytes());
  check_invariants(w.pool->stats());
  w.turn(256, simulated_stream{});
  w.pool->trim();
  CHECK(w.held_bytes() == 0);
}
