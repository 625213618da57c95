// Pools, and others, that give memory of one device back to each other.
#include "world.hpp"

#include <pagesift/pool/host_pool.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t budget = 128 * mebibyte;

/// A second pool on the world's device, with its own stream.
struct neighbour {
  explicit neighbour(world& of, const pool_options& options = {})
      : w{of}, pool{pagesift::simulated_backend{of.device}, with_backing(options)} {}

  void* allocate(std::size_t bytes) {
    void* const p = pool.allocate(bytes, s);
    w.device.hand_out(s, p, bytes);
    w.device.use(s, p, bytes);
    return p;
  }
  void free(void* p, std::size_t bytes) {
    w.device.hand_back(s, p, bytes);
    pool.deallocate(p, bytes, s);
  }
  void turn(std::size_t bytes) { free(allocate(bytes), bytes); }

  world& w;
  simulated_pool pool;
  simulated_stream s = w.device.create_stream();
};

pagesift::memory_place place_of(world& w) { return w.pool->backend().place(); }

}  // namespace

TEST_CASE("a pool that is short of memory gets what another pool of the device has idle") {
  world w{{}, with_budget(budget)};
  neighbour other{w};
  other.turn(100 * mebibyte);
  const simulated_stream s = w.device.create_stream();
  SUBCASE("work that used it is complete") { w.device.run_all(); }
  SUBCASE("work that used it may be going on") {}
  w.turn(100 * mebibyte, s);
  other.turn(100 * mebibyte);  // and back
  w.turn(100 * mebibyte, s);
}

TEST_CASE("a pool gives no more than is asked for, and keeps what is in use") {
  world w{{}, with_budget(budget)};
  neighbour other{w};
  std::vector<void*> blocks;
  for (int i = 0; i < 5; ++i) {
    blocks.push_back(other.allocate(20 * mebibyte));
  }
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    other.free(blocks[i], 20 * mebibyte);
  }
  w.turn(24 * mebibyte, w.device.create_stream());
  CHECK(other.pool.stats().held >= 60 * mebibyte);
  other.free(blocks[0], 20 * mebibyte);
}

TEST_CASE("memory in use by another pool is a shortage all the same") {
  world w{{}, with_budget(budget)};
  neighbour other{w};
  void* const p = other.allocate(100 * mebibyte);
  CHECK_THROWS_AS((void)w.pool->allocate(100 * mebibyte, w.device.create_stream()),
                  pagesift::out_of_memory);
  other.free(p, 100 * mebibyte);
}

TEST_CASE("a pool's first bytes come from other pools too") {
  world w{{}, with_budget(budget)};
  const simulated_stream s = w.device.create_stream();
  w.turn(100 * mebibyte, s);
  pool_options options;
  options.initial_bytes = 100 * mebibyte;
  const neighbour other{w, options};
  CHECK(other.pool.stats().held >= 100 * mebibyte);
}

TEST_CASE("a pool does not ask others for what its own limit forbids, nor those elsewhere") {
  world w{with_limit(64 * mebibyte), with_budget(budget)};
  world elsewhere{{}, with_budget(budget)};
  neighbour other{w};
  other.turn(20 * mebibyte);
  elsewhere.turn(20 * mebibyte, elsewhere.device.create_stream());
  const simulated_stream s = w.device.create_stream();
  void* const p = w.allocate(60 * mebibyte, s);
  CHECK_THROWS_AS((void)w.pool->allocate(50 * mebibyte, s), pagesift::out_of_memory);
  CHECK(other.pool.stats().idle >= 20 * mebibyte);
  CHECK(elsewhere.pool->stats().idle >= 20 * mebibyte);
  w.free(p, 60 * mebibyte, s);
}

TEST_CASE("a pool gives what a fence makes complete, and a capture stays valid") {
  simulated_options device_options = with_budget(budget);
  device_options.relaxed_sections = true;
  world w{{}, device_options};
  neighbour other{w};
  const simulated_stream s = w.device.create_stream();
  const simulated_stream capturing = w.device.create_stream();
  other.turn(100 * mebibyte);
  w.device.begin_capture(capturing);
  w.turn(100 * mebibyte, s);
  CHECK(w.device.end_capture(capturing));
}

TEST_CASE("another library's memory comes back through its callback, asked without a lock") {
  world w{{}, with_budget(budget)};
  const simulated_stream s = w.device.create_stream();
  pagesift::simulated_backend library{w.device};
  void* cache = nullptr;
  CHECK(library.acquire(100 * mebibyte, cache).ok());
  std::size_t wanted = 0;
  const auto registered = pagesift::on_shortage_of(place_of(w), [&](std::size_t asked) {
    wanted = asked;
    std::thread{[&] { w.turn(256, s); }}.join();
    CHECK(library.release(cache, 100 * mebibyte).ok());
    return 100 * mebibyte;
  });
  w.turn(100 * mebibyte, s);
  CHECK(wanted == 100 * mebibyte);
}

TEST_CASE("whoever gives nothing is asked once, and whoever says so for ever a few times") {
  world w{{}, with_budget(budget)};
  const simulated_stream s = w.device.create_stream();
  int asked = 0;
  std::size_t given = 0;
  const auto registered = pagesift::on_shortage_of(place_of(w), [&](std::size_t) {
    ++asked;
    return given;
  });
  void* const p = w.allocate(100 * mebibyte, s);
  CHECK_THROWS_AS((void)w.pool->allocate(100 * mebibyte, s), pagesift::out_of_memory);
  CHECK(asked == 1);
  given = 1;
  CHECK_THROWS_AS((void)w.pool->allocate(100 * mebibyte, s), pagesift::out_of_memory);
  CHECK(asked == 1 + pagesift::max_shortage_calls);
  w.free(p, 100 * mebibyte, s);
}

TEST_CASE("a callback that meets a shortage itself asks nobody, and its exception comes through") {
  world w{{}, with_budget(budget)};
  const simulated_stream s = w.device.create_stream();
  void* const p = w.allocate(100 * mebibyte, s);
  int depth = 0;
  const auto registered = pagesift::on_shortage_of(place_of(w), [&](std::size_t) -> std::size_t {
    ++depth;
    CHECK_THROWS_AS((void)w.pool->allocate(100 * mebibyte, s), pagesift::out_of_memory);
    throw std::runtime_error{"mine"};
  });
  CHECK_THROWS_WITH_AS((void)w.pool->allocate(100 * mebibyte, s), "mine", std::runtime_error);
  CHECK(depth == 1);
  CHECK_THROWS_WITH_AS((void)w.pool->allocate(100 * mebibyte, s), "mine", std::runtime_error);
  check_invariants(w.pool->stats());
  w.free(p, 100 * mebibyte, s);
}

TEST_CASE("nobody is asked for what a callback requests, the user of that pool neither") {
  pool_options options;
  int asked = 0;
  options.on_shortage = [&](std::size_t) { return ++asked == 0; };
  world w{options, with_budget(budget)};
  const simulated_stream s = w.device.create_stream();
  simulated_pool other{w.pool->backend()};
  void* const p = w.allocate(100 * mebibyte, s);
  const auto registered = pagesift::on_shortage_of(place_of(w), [&](std::size_t) -> std::size_t {
    CHECK_THROWS_AS((void)w.pool->allocate(100 * mebibyte, s), pagesift::out_of_memory);
    return 0;
  });
  CHECK_THROWS_AS((void)other.allocate(100 * mebibyte, s), pagesift::out_of_memory);
  CHECK(asked == 0);
  CHECK_THROWS_AS((void)w.pool->allocate(100 * mebibyte, s), pagesift::out_of_memory);
  CHECK(asked == 1);
  w.free(p, 100 * mebibyte, s);
}

TEST_CASE("a callback may end its own registration, and is not called any more") {
  world w{{}, with_budget(budget)};
  const simulated_stream s = w.device.create_stream();
  void* const p = w.allocate(100 * mebibyte, s);
  int asked = 0;
  pagesift::giver_registration registered;
  registered = pagesift::on_shortage_of(place_of(w), [&](std::size_t) {
    registered.reset();
    return static_cast<std::size_t>(++asked);
  });
  CHECK_THROWS_AS((void)w.pool->allocate(100 * mebibyte, s), pagesift::out_of_memory);
  CHECK(asked == 1);
  w.free(p, 100 * mebibyte, s);
}

TEST_CASE("a registration ends only when its callback is not being called any more") {
  world w;
  std::atomic<bool> called{false};
  std::atomic<bool> over{false};
  auto registered = pagesift::on_shortage_of(place_of(w), [&](std::size_t) {
    called = true;
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
    over = true;
    return std::size_t{1};
  });
  std::thread asker{[&] { (void)pagesift::ask_for_memory(place_of(w), 1); }};
  while (!called) {
    std::this_thread::yield();
  }
  registered.reset();
  CHECK(over);
  asker.join();
}

TEST_CASE("callbacks that want a mutex do not stop its holder from allocating") {
  std::mutex mutex;
  std::atomic<int> waiting{0};
  const auto wants_mutex = [&] {
    ++waiting;
    const std::lock_guard<std::mutex> guard{mutex};
  };
  pool_options options;
  options.on_shortage = [&](std::size_t) {
    wants_mutex();
    return false;
  };
  world w{options, with_budget(budget)};
  const auto registered = pagesift::on_shortage_of(place_of(w), [&](std::size_t) {
    wants_mutex();
    return std::size_t{0};
  });
  const simulated_stream s = w.device.create_stream();
  void* const p = w.allocate(100 * mebibyte, s);
  for (int call = 1; call <= 2; ++call) {
    std::unique_lock<std::mutex> held{mutex};
    waiting = 0;
    std::thread asker{[&] {
      CHECK_THROWS_AS((void)w.pool->allocate(100 * mebibyte, s), pagesift::out_of_memory);
    }};
    while (waiting < 1) {
      std::this_thread::yield();
    }
    w.turn(5000, w.device.create_stream());
    w.turn(mebibyte, s);
    held.unlock();
    asker.join();
  }
  w.free(p, 100 * mebibyte, s);
}

TEST_CASE("whoever is short of memory without a pool gets the pools' idle memory") {
  world w{{}, with_budget(budget)};
  w.turn(100 * mebibyte, w.device.create_stream());
  CHECK(pagesift::ask_for_memory(place_of(w), 60 * mebibyte) >= 60 * mebibyte);
  CHECK(w.device.calls(simulated_call::fence) == 1);
  (void)pagesift::ask_for_memory(place_of(w), budget);
  CHECK(w.held_bytes() == 0);
  CHECK(pagesift::ask_for_memory(place_of(w), 1) == 0);
}

TEST_CASE("memory that came back while others were asked is found, whoever gave it") {
  world w{{}, with_budget(budget)};
  pagesift::simulated_backend elsewhere{w.device};
  void* taken = nullptr;
  REQUIRE(elsewhere.acquire(100 * mebibyte, taken).ok());
  const auto registered = pagesift::on_shortage_of(place_of(w), [&](std::size_t) {
    if (void* const p = std::exchange(taken, nullptr)) {
      CHECK(elsewhere.release(p, 100 * mebibyte).ok());
    }
    return std::size_t{0};  // it had been about to do so anyway
  });
  w.turn(60 * mebibyte, w.device.create_stream());
  CHECK(taken == nullptr);
}

TEST_CASE("pools that ask each other at once do not lock each other out, and lose nothing") {
  world w{{}, with_budget(budget)};
  neighbour other{w};
  std::thread there{[&] {
    for (int i = 0; i < 300; ++i) {
      other.turn((30 + static_cast<std::size_t>(i) % 30) * mebibyte);
    }
  }};
  const simulated_stream s = w.device.create_stream();
  for (int i = 0; i < 300; ++i) {
    w.turn((30 + static_cast<std::size_t>(i) % 30) * mebibyte, s);
  }
  there.join();
  check_invariants(w.pool->stats());
  check_invariants(other.pool.stats());
}

TEST_CASE("threads whose blocks together just fit the limit never meet a shortage") {
  constexpr std::size_t block = 8 * mebibyte + 2 * mebibyte;
  constexpr std::size_t threads = 4;
  world w{with_limit(threads * block), with_budget(budget)};
  std::vector<std::thread> all;
  for (std::size_t t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      const simulated_stream s = w.device.create_stream();
      for (int i = 0; i < 400; ++i) {
        w.turn(block, s);
      }
    });
  }
  for (std::thread& t : all) {
    t.join();
  }
  CHECK(w.pool->stats().peak_held <= threads * block);
}

TEST_CASE("threads whose blocks together just fit a limit of host memory never meet a shortage") {
  constexpr std::size_t block = 10 * mebibyte;
  constexpr std::size_t threads = 8;
  pagesift::host_pool pool{with_limit(threads * block)};
  std::vector<std::thread> all;
  std::atomic<int> failures{0};
  for (std::size_t t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (std::size_t i = 0; i < 2000; ++i) {
        const std::size_t bytes = (i + t) % 3 == 0 ? block : (1 + (i + t) % 9) * mebibyte;
        try {
          pool.deallocate(pool.allocate(bytes, {}), bytes, {});
        } catch (const pagesift::out_of_memory&) {
          ++failures;
        }
      }
    });
  }
  for (std::thread& t : all) {
    t.join();
  }
  CHECK(failures == 0);
}

TEST_CASE("a pool gives others the memory of its graphs that are over") {
  simulated_options options = with_budget(budget);
  options.relaxed_sections = true;
  world w{{}, options};
  neighbour other{w};
  w.device.begin_capture(other.s);
  other.turn(100 * mebibyte);
  const pagesift::simulated_graph graph = w.device.capture_graph(other.s);
  const pagesift::simulated_executable replay = w.device.instantiate(graph);
  w.device.destroy(graph);
  SUBCASE("and the pool has not looked since") {}
  SUBCASE("but for a launch that has not run") { w.device.launch(replay, other.s); }
  w.device.destroy(replay);
  w.turn(100 * mebibyte, w.device.create_stream());
}
