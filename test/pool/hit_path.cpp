// What a hit asks of the backend, and that it needs no lock that others hold.
#include "world.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace {

void pairs(world& w, simulated_stream s, int count, std::size_t bytes = 4096) {
  for (int i = 0; i < count; ++i) {
    w.pool->deallocate(w.pool->allocate(bytes, s), bytes, s);
  }
}

using remembered = pagesift::remembered_stream<pagesift::simulated_backend>;

/// What the calling thread remembers of `s`. Precondition: no pool is younger than the world's.
remembered* entry_of(const world&, simulated_stream s) {
  const std::uint64_t after = pagesift::next_pool_number();
  for (std::uint64_t number = after; number-- > 1;) {
    remembered* const found = pagesift::last_streams<pagesift::simulated_backend>::find(number, s);
    if (found != nullptr) {
      return found;
    }
  }
  FAIL("not remembered");
  return nullptr;
}

/// Allocates and frees a block on a thread that finds the stream's first cache held when it frees,
/// once more than it puts up with. Returns its address.
void* free_apart(world& w, simulated_stream s, std::size_t bytes) {
  w.turn(256, s);
  void* p = nullptr;
  std::thread{[&] {
    p = w.allocate(bytes, s);
    w.free(w.allocate(256, s), 256, s);  // takes the bias away
    remembered* const mine = entry_of(w, s);
    mine->meetings = 7;
    pagesift::stream_cache& first = *mine->cache;
    first.lock.lock(nullptr);
    w.free(p, bytes, s);  // hangs where it goes on waiting
    first.lock.unlock();
    CHECK(mine->cache != &first);
  }}.join();
  return p;
}

/// Runs `act` on a thread that has run `warm_up`, while the calling thread holds the pool's mutex
/// and no cache. Hangs where `act` needs the mutex. Precondition: the pool has made no event yet.
void while_mutex_is_held(world& w, const std::function<void()>& warm_up,
                         const std::function<void()>& act) {
  std::atomic<int> stage{0};
  const auto await = [&stage](int reached) {
    while (stage != reached) {
      std::this_thread::yield();
    }
  };
  const simulated_stream sealing = w.device.create_stream();
  w.show_two_streams();
  w.turn(40 * mebibyte, sealing);
  std::thread other{[&] {
    warm_up();
    warm_up();  // its free has answered what the first one's miss asked for
    stage = 1;
    await(2);
    act();
  }};
  await(1);
  w.device.before_calls([&](simulated_call call) {
    if (call == simulated_call::create_event && stage == 1) {  // made under the mutex
      stage = 2;
      other.join();
    }
  });
  w.turn(40 * mebibyte, sealing);  // a hit; its free is sealed by one event more
  w.device.before_calls({});
  REQUIRE(stage == 2);
}

}  // namespace

TEST_CASE("a pair on a stream asks once who the stream is, and makes no other call") {
  for (const bool trusting : {false, true}) {
    world w{trusting ? trusted() : pool_options{}};
    const simulated_stream s = w.device.create_stream();
    w.show_two_streams();
    pairs(w, s, 1);
    w.device.reset_calls();
    void* const p = w.pool->allocate(4096, s);
    CHECK(w.device.calls(simulated_call::inspect) == 1);
    w.pool->deallocate(p, 4096, s);
    pairs(w, s, 999);
    CHECK(w.device.calls(simulated_call::inspect) == 1000);
    CHECK(w.calls_with_effect() == 0);
  }
}

TEST_CASE("hits keep the order of their stream on every way there is") {
  for (const bool trusting : {false, true}) {
    world w{trusting ? trusted() : pool_options{}};
    const simulated_stream s = w.device.create_stream();
    const simulated_stream t = w.device.create_stream();
    const auto on_s = w.pool->on(s);
    for (int i = 0; i < 100; ++i) {
      w.turn(5000, s);
      w.turn(5000, t);
      void* const p = on_s.allocate(5000);
      w.device.hand_out(s, p, 5000);
      w.device.use(s, p, 5000);
      w.device.order(s, t);
      w.device.hand_back(t, p, 5000);  // handed out on one stream, freed on another
      w.pool->deallocate(p, 5000, t);
      w.device.run_some();
    }
  }
}

TEST_CASE("hits of one stream go on while another stream's cache is held") {
  world w;
  const simulated_stream mine = w.device.create_stream();
  const simulated_stream theirs = w.device.create_stream();
  w.turn(4096, theirs);
  w.turn(4096, mine);
  const pagesift::cache_guard held{entry_of(w, theirs)->cache->lock};
  pairs(w, mine, 1000);  // hangs where both streams share a lock
}

TEST_CASE("a hit on more streams than a thread remembers stops no other stream either") {
  world w;
  std::vector<simulated_stream> streams;
  for (int i = 0; i < 8; ++i) {
    streams.push_back(w.device.create_stream());
    w.turn(4096, streams.back());
  }
  const simulated_stream theirs = w.device.create_stream();
  w.turn(4096, theirs);
  const pagesift::cache_guard held{entry_of(w, theirs)->cache->lock};
  for (int i = 0; i < 10; ++i) {
    for (const simulated_stream s : streams) {
      w.turn(4096, s);  // hangs where it stops all caches
    }
  }
}

TEST_CASE("hits go on while another thread holds the pool's mutex") {
  world w;
  const simulated_stream s = w.device.create_stream();
  while_mutex_is_held(
      w, [&] { w.turn(4096, s); }, [&] { pairs(w, s, 1000); });
}

TEST_CASE("a block larger than the seals' threshold, used in a loop, is sealed ever more rarely") {
  world w;
  w.show_two_streams();
  const simulated_stream s = w.device.create_stream();
  w.device.reset_calls();
  pairs(w, s, 1000, 40 * mebibyte);
  CHECK(w.device.calls(simulated_call::record) <= 10);  // 1, 3, 7, ... frees apart
  CHECK(w.device.calls(simulated_call::record) >= 8);
  w.device.reset_calls();
  pairs(w, s, 200000, 40 * mebibyte);
  CHECK(w.device.calls(simulated_call::record) <= 9);
}

TEST_CASE("a stream whose memory somebody misses seals at once, however rarely it did before") {
  world w;
  w.show_two_streams();
  const simulated_stream s = w.device.create_stream();
  pairs(w, s, 1000, 40 * mebibyte);
  w.turn(50 * mebibyte, w.device.create_stream());  // finds nothing that fits
  w.device.reset_calls();
  pairs(w, s, 1, 40 * mebibyte);
  CHECK(w.device.calls(simulated_call::record) == 1);
  pairs(w, s, 1, 40 * mebibyte);
  CHECK(w.device.calls(simulated_call::record) == 2);  // the count of frees began anew
}

TEST_CASE("a free that is to be followed by an event asks who the stream is now") {
  world w;
  w.show_two_streams();
  const simulated_stream s = w.device.create_stream();
  void* const p = w.allocate(40 * mebibyte, s);
  w.device.reset_calls();
  w.free(p, 40 * mebibyte, s);
  CHECK(w.device.calls(simulated_call::inspect) == 1);
  CHECK(w.device.calls(simulated_call::record) == 1);
}

TEST_CASE("a free that comes twice is refused, whichever way it takes, and nothing is lost") {
  for (const bool trusting : {false, true}) {
    world w{trusting ? trusted() : pool_options{}};
    const simulated_stream s = w.device.create_stream();
    const simulated_stream t = w.device.create_stream();
    void* const p = w.turn(5000, s);
    std::uint64_t refused = 0;
    const auto again = [&](void* q, simulated_stream on) {
      w.pool->deallocate(q, 5000, on);
      CHECK(w.pool->stats().rejected_frees == ++refused);
    };
    again(p, s);                               // the cache remembers it
    again(p, t);                               // a stream that no free has named yet
    again(p, s);                               // looked up: the counts have been settled
    again(static_cast<char*>(p) + 256, s);     // a block that was never handed out, or none
    again(static_cast<char*>(p) + 1, s);       // not the start of one
    again(&w, s);                              // not the pool's memory
    std::thread{[&] { again(p, s); }}.join();  // a thread that knows no stream
    w.pool->on(s).deallocate(p, 5000);
    CHECK(w.pool->stats().rejected_frees == ++refused);
    check_invariants(w.pool->stats());
    CHECK(w.pool->stats().in_use == 0);
    void* const q = w.allocate(5000, s);
    void* const r = w.allocate(5000, s);
    CHECK(q != r);
    w.free(q, 5000, s);
    w.free(r, 5000, s);
    w.pool->trim();
    CHECK(w.held_bytes() == 0);
  }
}

TEST_CASE("a thread that keeps meeting others at a cache gets one of its own on the stream") {
  world w;
  const simulated_stream s = w.device.create_stream();
  void* const p = free_apart(w, s, 8192);
  CHECK(entry_of(w, s)->cache->of(pagesift::class_of(8192)).empty());  // the first one
  CHECK(w.turn(8192, s) == p);
}

TEST_CASE(
    "a block that waits in another thread's cache of the stream is a hit, without the mutex") {
  world w;
  const simulated_stream s = w.device.create_stream();
  void* const p = free_apart(w, s, 8192);
  void* q = nullptr;
  while_mutex_is_held(
      w, [&] { w.turn(256, s); }, [&] { q = w.turn(8192, s); });
  CHECK(q == p);
}
