// All caches of a pool: stopping them, and adding up what they counted.
#include "cache_scene.hpp"

#include <pagesift/front/cache_registry.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

using pagesift::cache_guard;
using pagesift::cache_registry;
using pagesift::exact_use_count;
using pagesift::pool_lock;
using pagesift::stream_cache;
using pagesift::use_count;

TEST_CASE("a peak is that of one cache, exactly, where no other was used") {
  use_count use;
  use.add(0, 300);
  CHECK(use.peak() == 300);
  CHECK(use.in_use() == 0);
  use.add(100, 200);
  CHECK(use.peak() == 300);
  CHECK(use.in_use() == 100);
  use.add(0, 250);
  CHECK(use.peak() == 350);
  use.add(-100, 0);
  CHECK(use.in_use() == 0);
  use.reset_peak();
  CHECK(use.peak() == 0);
}

TEST_CASE("exact counts keep the true peak of what several threads hold") {
  exact_use_count use;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&use] {
      for (int j = 0; j < 10000; ++j) {
        use.handed_out(256);
        use.taken_back(256);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(use.peak() >= 256);
  CHECK(use.peak() <= 4 * 256);
  use.reset_peak();
  CHECK(use.peak() == 0);
  use.handed_out(512);
  use.handed_out(256);
  use.taken_back(512);
  CHECK(use.peak() == 768);
  use.reset_peak();
  CHECK(use.peak() == 256);
}

TEST_CASE("the pool's lock leaves the caches to their users until it freezes them") {
  cache_registry all;
  stream_cache& own = all.make(true);
  stream_cache& shared = all.make(false);
  const auto somebody_gets_in = [](stream_cache& cache) {
    bool in = false;
    std::thread{[&] {
      in = cache.lock.try_lock(pagesift::this_thread_mark());
      if (in) {
        cache.lock.unlock();
      }
    }}.join();
    return in;
  };
  pool_lock lock{all};
  CHECK(somebody_gets_in(shared));
  lock.freeze();
  lock.freeze();  // once is enough
  CHECK_FALSE(somebody_gets_in(shared));
  CHECK_FALSE(somebody_gets_in(own));
  CHECK_FALSE(own.lock.enter(pagesift::this_thread_mark()));
  lock.thaw();
  CHECK(somebody_gets_in(shared));
  CHECK(somebody_gets_in(own));
  lock.freeze();
  lock.unlock();
  CHECK(all.mutex.try_lock());
  all.mutex.unlock();
  CHECK(somebody_gets_in(shared));
  lock.lock();  // the same again: all of them
  CHECK_FALSE(somebody_gets_in(shared));
}

TEST_CASE("stopping all caches waits until the owner of one has left it") {
  if (!pagesift::asymmetric_fence::available()) {
    return;
  }
  cache_registry all;
  stream_cache& mine = all.make(true);
  REQUIRE(mine.lock.enter(pagesift::this_thread_mark()));
  std::atomic<bool> begun{false};
  bool left = false;
  std::thread other{[&] {
    begun = true;
    pool_lock lock{all};
    lock.freeze();
    CHECK(left);
  }};
  while (!begun) {
    std::this_thread::yield();
  }
  for (int i = 0; i < 1000; ++i) {  // time to go wrong in
    std::this_thread::yield();
  }
  left = true;
  mine.lock.leave();
  other.join();
}

TEST_CASE("what caches moved is settled when they are stopped and when they go on") {
  cut_blocks blocks{4096};
  cache_registry all;
  stream_cache& one = all.make(true);
  stream_cache& other = all.make(false);
  one.handed_out(blocks[0], blocks.index());
  other.handed_out(blocks[1], blocks.index());
  other.taken_back(blocks[1]);
  {
    pool_lock lock{all};
    lock.freeze();
    CHECK(all.use.in_use() == 4096);
    CHECK(all.use.peak() == 8192);  // as if both had been at their own peak at once
    CHECK(one.moved_bytes() == 0);
    CHECK(all.traffic(blocks.index()).handed_out == 2);
    CHECK(all.frees() == 1);
    one.taken_back(blocks[0]);
  }
  CHECK(one.moved_bytes() == 0);
  CHECK(all.use.in_use() == 0);
}

namespace {

/// Adds 1, so slowly that somebody else who does it at the same time is sure to be lost.
void add_slowly(std::size_t& count) {
  const std::size_t before = count;
  for (int i = 0; i < 32; ++i) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  count = before + 1;
}

}  // namespace

TEST_CASE("threads in their own caches and one that stops all of them never meet inside") {
  cache_registry all;
  constexpr int users = 3;
  constexpr std::size_t turns = 50000;
  std::vector<std::size_t> turns_taken(users);  // each guarded by its user's cache
  std::vector<std::thread> threads;
  std::atomic<int> working{users};
  for (int i = 0; i < users; ++i) {
    threads.emplace_back([&, i] {
      stream_cache* mine = nullptr;
      {
        const pool_lock lock{all};
        mine = &all.make(true);
      }
      for (std::size_t turn = 0; turn < turns; ++turn) {
        const cache_guard guard{mine->lock};
        add_slowly(turns_taken[static_cast<std::size_t>(i)]);
      }
      --working;
    });
  }
  std::size_t stops = 0;
  for (; working != 0 || stops < 1000; ++stops) {
    pool_lock lock{all};
    lock.freeze();
    for (std::size_t& count : turns_taken) {
      add_slowly(count);
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::size_t count : turns_taken) {
    CHECK(count == turns + stops);
  }
}
