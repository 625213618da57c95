// Several threads on one pool.
#include "world.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <thread>
#include <vector>

namespace {

/// Runs `act` on another thread while the first call of kind `which` is about to take effect.
/// The test hangs where the pool makes that call under its lock.
class during_first_call {
 public:
  during_first_call(world& w, simulated_call which, const std::function<void()>& act) : w_{w} {
    w_.device.before_calls([this, which, act](simulated_call call) {
      if (call == which && !happened_.exchange(true)) {
        std::thread{act}.join();
      }
    });
  }
  during_first_call(const during_first_call&) = delete;
  during_first_call& operator=(const during_first_call&) = delete;
  ~during_first_call() {
    w_.device.before_calls({});
    CHECK(happened_);
  }

 private:
  world& w_;
  std::atomic<bool> happened_{false};
};

/// Starts `act` on another thread while the first call of kind `which` is about to take effect,
/// leaves it time to go wrong, and joins it at the end: for threads that must wait for that call.
/// That they wait cannot be seen; that they did not, in what they came to.
class beside_first_call {
 public:
  beside_first_call(world& w, simulated_call which, const std::function<void()>& act) : w_{w} {
    w_.device.before_calls([this, which, act](simulated_call call) {
      if (call == which && !begun_.exchange(true)) {
        other_ = std::thread{act};
        std::this_thread::sleep_for(std::chrono::milliseconds{100});
      }
    });
  }
  beside_first_call(const beside_first_call&) = delete;
  beside_first_call& operator=(const beside_first_call&) = delete;
  ~beside_first_call() {
    other_.join();
    w_.device.before_calls({});
  }

 private:
  world& w_;
  std::thread other_;
  std::atomic<bool> begun_{false};
};

}  // namespace

TEST_CASE("a block is not free for others before the event that covers it is recorded") {
  world w;
  w.show_two_streams();
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  void* const p = w.allocate(40 * mebibyte, a);
  {
    const during_first_call other{w, simulated_call::record, [&] {
                                    w.device.run_all();
                                    CHECK(w.turn(40 * mebibyte, b) != p);
                                  }};
    w.free(p, 40 * mebibyte, a);
  }
}

TEST_CASE("on a full device a block is not free for others before its event is recorded") {
  world w{{}, with_budget(64 * mebibyte)};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  w.turn(256, b);
  void* const p = w.allocate(60 * mebibyte, a);
  {
    const during_first_call other{w, simulated_call::record, [&] {
                                    w.turn(60 * mebibyte, b);  // the judge sees it if too early
                                  }};
    w.free(p, 60 * mebibyte, a);
  }
}

TEST_CASE(
    "an event that another thread saw complete meanwhile is not waited for or given up twice") {
  world w{{}, with_budget(128 * mebibyte)};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  const simulated_stream c = w.device.create_stream();
  w.turn(5000, c);
  w.turn(100 * mebibyte, a);
  void* kept = nullptr;
  void* reused = nullptr;
  {
    const during_first_call other{w, simulated_call::acquire, [&] {
                                    w.device.run_all();
                                    kept = w.allocate(500, c);  // looks after all events
                                  }};
    reused = w.allocate(100 * mebibyte, b);
  }
  CHECK(w.pool->stats().stream_waits == 0);

  // Two streams free a block each, and another takes the first: their seals must be two events.
  const auto gate = w.device.gate(b);
  w.free(reused, 100 * mebibyte, b);
  w.free(kept, 500, c);
  w.turn(100 * mebibyte, a);  // the judge sees a wait for the wrong event
  w.device.open(gate);
}

TEST_CASE("other threads use the pool while one is inside a backend call that may block") {
  world w{{}, with_budget(64 * mebibyte)};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  const simulated_stream mine = w.device.create_stream();
  w.turn(256, mine);
  const auto use_the_pool = [&] {
    w.turn(256, mine);
    check_invariants(w.pool->stats());
  };
  SUBCASE("acquire") {
    const during_first_call other{w, simulated_call::acquire, use_the_pool};
    w.turn(40 * mebibyte, a);
  }
  SUBCASE("record") {
    const during_first_call other{w, simulated_call::record, use_the_pool};
    w.turn(40 * mebibyte, a);
  }
  SUBCASE("wait") {
    w.turn(40 * mebibyte, a);
    const during_first_call other{w, simulated_call::wait, use_the_pool};
    w.turn(40 * mebibyte, b);
  }
  SUBCASE("release") {
    w.turn(40 * mebibyte, a);
    w.device.synchronize();
    const during_first_call other{w, simulated_call::release, use_the_pool};
    w.turn(60 * mebibyte, b);
  }
  SUBCASE("synchronize") {
    w.turn(40 * mebibyte, a);
    const during_first_call other{w, simulated_call::synchronize, use_the_pool};
    w.turn(60 * mebibyte, b);
  }
  SUBCASE("fence") {
    w.turn(40 * mebibyte, a);
    const during_first_call other{w, simulated_call::fence, use_the_pool};
    w.pool->trim();
  }
}

TEST_CASE("other threads use the pool while one is inside a call that maps memory or unmaps it") {
  world w{on_mapped_memory(), with_budget(64 * mebibyte)};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream mine = w.device.create_stream();
  const auto use_the_pool = [&] {
    w.turn(256, mine);
    check_invariants(w.pool->stats());
  };
  w.turn(256, mine);
  for (const simulated_call call : {simulated_call::create, simulated_call::map}) {
    const during_first_call other{w, call, use_the_pool};
    w.turn(20 * mebibyte, w.device.create_stream());
  }
  w.turn(40 * mebibyte, a);
  for (const simulated_call call : {simulated_call::unmap, simulated_call::destroy}) {
    w.turn(20 * mebibyte, a);
    const during_first_call other{w, call, use_the_pool};
    w.pool->trim();
  }
}

TEST_CASE("a request waits for memory that another thread is about to release") {
  world w{{}, with_budget(64 * mebibyte)};
  const simulated_stream a = w.device.create_stream();
  w.turn(60 * mebibyte, a);
  w.device.synchronize();
  w.pool->end_batch();
  std::thread asking;
  std::atomic<bool> started{false};
  w.device.before_calls([&](simulated_call call) {
    if (call == simulated_call::release && !started.exchange(true)) {
      const std::uint64_t before = w.device.calls(simulated_call::acquire);
      asking = std::thread{[&] { w.turn(62 * mebibyte, w.device.create_stream()); }};
      while (w.device.calls(simulated_call::acquire) == before) {
        std::this_thread::yield();
      }
    }
  });
  w.pool->trim();
  asking.join();
  w.device.before_calls({});
}

TEST_CASE("a limit counts memory that another thread is just taking") {
  world w{with_limit(64 * mebibyte), with_budget(256 * mebibyte)};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  {
    const beside_first_call other{w, simulated_call::acquire, [&] {
                                    try {
                                      w.turn(40 * mebibyte, b);
                                    } catch (const pagesift::out_of_memory&) {
                                      // The first thread may not have given its block back yet.
                                    }
                                  }};
    w.turn(40 * mebibyte, a);
  }
  CHECK(w.pool->stats().peak_held <= 64 * mebibyte);
}

TEST_CASE("memory that another thread is just taking is waited for before a request fails") {
  world w{with_limit(pagesift::page_bytes), with_budget(256 * mebibyte)};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  {
    const beside_first_call other{w, simulated_call::acquire,
                                  [&] { CHECK_NOTHROW(w.turn(256, b)); }};
    w.turn(256, a);
  }
  CHECK(w.pool->stats().backend_allocations == 1);
}

TEST_CASE("peaks are exact when two threads hold memory at once") {
  for (const bool exact : {false, true}) {
    pool_options options;
    options.exact_peaks = exact;
    world w{options};
    std::atomic<int> holding{0};
    const auto hold = [&](std::size_t bytes) {
      const simulated_stream s = w.device.create_stream();
      void* const p = w.allocate(bytes, s);
      ++holding;
      while (holding < 2) {
        std::this_thread::yield();
      }
      w.free(p, bytes, s);
    };
    std::thread one{hold, 6 * mebibyte};
    std::thread other{hold, 10 * mebibyte};
    one.join();
    other.join();
    CHECK(w.pool->stats().peak_in_use == 16 * mebibyte);
    CHECK(w.pool->stats().in_use == 0);
  }
}

TEST_CASE("threads with streams of their own and a shared one never get memory too early") {
  simulated_options device_options = with_budget(96 * mebibyte);
  device_options.on_blocked_wait = pagesift::blocked_wait::opens_gates;
  world w{{}, device_options};
  const simulated_stream shared = w.device.create_stream();
  const auto work = [&](std::uint64_t seed) {
    std::mt19937_64 random{seed};
    const auto below = [&](std::size_t bound) {
      return static_cast<std::size_t>(random() % bound);
    };
    simulated_stream mine = w.device.create_stream();
    for (int i = 0; i < 5000; ++i) {
      const simulated_stream s = below(4) == 0 ? shared : mine;
      const std::size_t bytes = 1 + below(std::size_t{1} << (4 + below(21)));
      try {
        void* const p = w.allocate(bytes, s);
        if (below(20) == 0) {
          w.device.run_some();
        }
        w.free(p, bytes, s);
      } catch (const pagesift::out_of_memory&) {
      }
      const std::size_t dice = below(400);
      if (dice == 0) {
        w.pool->trim();
      } else if (dice == 1) {
        w.pool->end_batch();
      } else if (dice < 4) {
        w.pool->retire(mine);
        w.device.destroy_stream(mine);
        mine = w.device.create_stream();
      } else if (dice < 6) {
        (void)w.device.gate(mine);
      } else if (dice < 8) {
        void* const p = w.pool->allocate_sync(4096);
        w.device.hand_out(p, 4096);
        w.device.hand_back(p, 4096);
        w.pool->deallocate_sync(p, 4096);
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back(work, seed);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  check_invariants(w.pool->stats());
  CHECK(w.pool->stats().in_use == 0);
  w.device.open_all_gates();
  w.pool->trim();
  CHECK(w.device.acquired_bytes() == 0);
}

TEST_CASE("an event is created while other threads go on") {
  world w;
  w.show_two_streams();
  const simulated_stream a = w.device.create_stream();
  void* const p = w.allocate(40 * mebibyte, a);
  {
    const during_first_call other{w, simulated_call::create_event,
                                  [&] { w.turn(mebibyte, w.device.create_stream()); }};
    w.free(p, 40 * mebibyte, a);
  }
}

TEST_CASE("events are asked after while hits of other threads go on") {
  world w;
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  w.turn(256, b);
  std::atomic<bool> known{false};
  std::atomic<bool> asked{false};
  std::atomic<bool> done{false};
  std::thread other{[&] {
    w.turn(4096, a);  // the thread remembers the stream: its next request is a hit
    known = true;
    while (!asked) {
      std::this_thread::yield();
    }
    void* const p = w.allocate(4096, a);
    done = true;
    w.free(p, 4096, a);
  }};
  while (!known) {
    std::this_thread::yield();
  }
  w.turn(40 * mebibyte, b);  // sealed
  w.device.before_calls([&](simulated_call call) {
    if (call == simulated_call::query) {
      asked = true;
      while (!done) {
        std::this_thread::yield();
      }
    }
  });
  w.turn(50 * mebibyte, w.device.create_stream());
  w.device.before_calls({});
  CHECK(asked);
  asked = true;
  other.join();
}

TEST_CASE("memory that comes at addresses just given back is not taken for what was there") {
  world w;
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  w.turn(10 * mebibyte, a);
  std::atomic<bool> happened{false};
  w.device.after_calls([&](simulated_call call) {
    if (call == simulated_call::release && !happened.exchange(true)) {
      std::thread{[&] { w.turn(20 * mebibyte, b); }}.join();
    }
  });
  w.pool->trim();
  w.device.after_calls({});
  CHECK(happened);
  w.turn(15 * mebibyte, b);
  check_invariants(w.pool->stats());
  w.pool->trim();
  CHECK(w.held_bytes() == 0);
}
