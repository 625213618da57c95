// What becomes of pools in a forked child.
#include "child.hpp"

#include <pagesift/backend/simulated.hpp>
#include <pagesift/pool/checked/checked_pools.hpp>
#include <pagesift/pool/host_pool.hpp>
#include <pagesift/pool/pool.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using pagesift::mebibyte;
using pagesift::simulated_call;
using simulated_pool = pagesift::basic_pool<pagesift::simulated_backend>;

namespace {

std::uint64_t all_calls(const pagesift::simulated_device& device) {
  std::uint64_t calls = 0;
  for (std::size_t i = 0; i < pagesift::simulated_call_count; ++i) {
    calls += device.calls(static_cast<simulated_call>(i));
  }
  return calls;
}

template <typename Call>
bool says_fork(Call&& call) {
  try {
    call();
  } catch (const pagesift::fork_error& e) {
    return std::string{e.what()}.find("forked child") != std::string::npos;
  }
  return false;
}

/// A pool on a simulated device, with a block in use and idle memory.
struct scene {
  pagesift::simulated_device device;
  std::optional<simulated_pool> pool{std::in_place, pagesift::simulated_backend{device}};
  pagesift::simulated_stream s = device.create_stream();
  void* kept = pool->allocate(5000, s);

  scene() { pool->deallocate(pool->allocate(40 * mebibyte, s), 40 * mebibyte, s); }
  ~scene() {
    if (pool) {
      pool->deallocate(kept, 5000, s);
    }
  }
};

/// Holds calls of one kind up until it is told to let go.
class stopped_call {
 public:
  stopped_call(pagesift::simulated_device& device, simulated_call which) : device_{device} {
    device_.before_calls([this, which](simulated_call call) {
      std::unique_lock<std::mutex> lock{mutex_};
      if (call == which && !let_go_) {
        stopped_ = true;
        changed_.notify_all();
        changed_.wait(lock, [this] { return let_go_; });
      }
    });
  }
  stopped_call(const stopped_call&) = delete;
  stopped_call& operator=(const stopped_call&) = delete;
  ~stopped_call() { device_.before_calls({}); }

  void await() {
    std::unique_lock<std::mutex> lock{mutex_};
    changed_.wait(lock, [this] { return stopped_; });
  }
  void let_go() {
    const std::lock_guard<std::mutex> guard{mutex_};
    let_go_ = true;
    changed_.notify_all();
  }

 private:
  pagesift::simulated_device& device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  bool let_go_ = false;
};

}  // namespace

TEST_CASE("a child that asks for memory of its parent's device is told so, and makes no call") {
  scene w;
  const auto bound = w.pool->on(w.s);
  const std::uint64_t before = all_calls(w.device);
  CHECK(code_of_child([&] {
          const bool told = says_fork([&] { (void)w.pool->allocate(5000, w.s); }) &&
                            says_fork([&] { (void)w.pool->allocate(40 * mebibyte, w.s); }) &&
                            says_fork([&] { (void)w.pool->allocate_sync(256); }) &&
                            says_fork([&] { (void)bound.allocate(5000); }) &&
                            says_fork([&] { (void)w.pool->on(w.s); }) &&
                            says_fork([&] { (void)w.pool->stats(); }) &&
                            says_fork([&] { (void)w.pool->backend_within_reach(); });
          return told && all_calls(w.device) == before ? 0 : 1;
        }) == 0);
  w.pool->deallocate(w.pool->allocate(5000, w.s), 5000, w.s);  // the parent goes on
}

TEST_CASE("a child that gives memory back, or destroys the pool, does nothing") {
  scene w;
  const auto bound = w.pool->on(w.s);
  const std::uint64_t before = all_calls(w.device);
  CHECK(code_of_child([&] {
          w.pool->deallocate(w.kept, 5000, w.s);
          bound.deallocate(w.kept, 5000);
          w.pool->deallocate_sync(w.kept, 5000);
          w.pool->trim();
          w.pool->end_batch();
          w.pool->retire(w.s);
          w.pool->reset_peaks();
          w.pool.reset();
          return all_calls(w.device) == before ? 0 : 1;
        }) == 0);
  CHECK(w.pool->stats().rejected_frees == 0);
}

TEST_CASE("a child's own pool works where its parent's does not") {
  scene w;
  CHECK(code_of_child([&] {
          pagesift::simulated_device device;
          simulated_pool own{pagesift::simulated_backend{device}};
          const auto s = device.create_stream();
          own.deallocate(own.allocate(5000, s), 5000, s);
          own.trim();
          return own.stats().held == 0 ? 0 : 1;
        }) == 0);
}

TEST_CASE("a child forked while a thread holds the pool's mutex does not hang") {
  scene w;
  const auto other = w.device.create_stream();
  w.pool->deallocate(w.pool->allocate(256, other), 256, other);
  w.pool->deallocate(w.pool->allocate(40 * mebibyte, w.s), 40 * mebibyte, w.s);
  w.pool->retire(w.s);
  stopped_call query{w.device, simulated_call::query};
  std::thread holder{
      [&] { w.pool->deallocate(w.pool->allocate(40 * mebibyte, other), 40 * mebibyte, other); }};
  query.await();
  CHECK(code_of_child([&] {
          w.pool->deallocate(w.kept, 5000, w.s);
          const bool told = says_fork([&] { (void)w.pool->allocate(40 * mebibyte, w.s); });
          w.pool.reset();
          return told ? 0 : 1;
        }) == 0);
  query.let_go();
  holder.join();
}

TEST_CASE("a child forked while a thread waits for memory on its way destroys the pool") {
  pagesift::simulated_device device;
  pagesift::pool_options options;
  options.limit_bytes = 64 * mebibyte;
  options.backing = pagesift::backing::plain;
  std::optional<simulated_pool> pool{std::in_place, pagesift::simulated_backend{device}, options};
  const auto s = device.create_stream();
  const auto turn = [&] {
    try {
      pool->deallocate(pool->allocate(40 * mebibyte, s), 40 * mebibyte, s);
    } catch (const pagesift::out_of_memory&) {  // the other thread has all that the limit allows
    }
  };
  stopped_call acquire{device, simulated_call::acquire};
  std::thread first{turn};
  acquire.await();
  std::thread second{turn};
  std::this_thread::sleep_for(std::chrono::milliseconds{100});  // it finds no memory, and waits
  CHECK(code_of_child([&] {
          pool.reset();
          return 0;
        }) == 0);
  acquire.let_go();
  first.join();
  second.join();
}

namespace {

/// Forks ten times while three threads use the pool, and has the children use it.
void use_in_children(std::unique_ptr<pagesift::host_pool> pool) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; !stop; ++i) {
        const std::size_t bytes = (1 + (i + t) % 7) * mebibyte;
        void* const p = pool->allocate(bytes, {});
        pool->deallocate(p, bytes, {});
        if (i % 64 == 0) {
          pool->trim();
        }
        std::this_thread::yield();  // a mutex that is always wanted may keep the fork out for long
      }
    });
  }
  for (int i = 0; i < 10; ++i) {
    CHECK(code_of_child([&] {
            for (std::size_t bytes = 256; bytes <= 16 * mebibyte; bytes *= 4) {
              void* const p = pool->allocate(bytes, {});
              std::memset(p, 1, bytes);
              pool->deallocate(p, bytes, {});
            }
            pool->trim();
            (void)pool->stats();
            pool.reset();
            return 0;
          }) == 0);
  }
  stop = true;
  for (std::thread& t : threads) {
    t.join();
  }
}

}  // namespace

TEST_CASE("a host pool goes on in a child, whatever other threads were doing at the fork") {
  pagesift::pool_options options;
  options.limit_bytes = 64 * mebibyte;
  use_in_children(std::make_unique<pagesift::host_pool>(options));
}

TEST_CASE("a ledger that another thread looks into stays whole over a fork") {
  pagesift::block_ledger ledger;
  pagesift::checked_pools::get().add(ledger);
  std::atomic<bool> stop{false};
  std::thread other{[&] {
    while (!stop) {
      (void)ledger.in_use(nullptr);
    }
  }};
  for (int i = 0; i < 100; ++i) {
    CHECK(code_of_child([&] {
            const bool unknown = !pagesift::checked_pools::get().in_use(&ledger);
            pagesift::checked_pools::get().remove(ledger);
            return unknown && !ledger.in_use(&ledger) ? 0 : 1;
          }) == 0);
  }
  stop = true;
  other.join();
  pagesift::checked_pools::get().remove(ledger);
}

TEST_CASE("a checked host pool goes on in a child") {
  pagesift::pool_options options;
  options.limit_bytes = 256 * mebibyte;  // what other threads had is lost to the child
  options.checks = pagesift::checks::full;
  options.on_misuse = [](const pagesift::misuse_report& r) {
    if (r.kind !=
        pagesift::misuse::leak) {  // what other threads had at the fork leaks in the child
      std::abort();
    }
  };
  use_in_children(std::make_unique<pagesift::host_pool>(options));
}

namespace {

/// Host memory whose acquisitions can be held up.
struct slow_host : pagesift::host_backend {
  static slow_host open(int) { return {}; }
  pagesift::status acquire(std::size_t bytes, void*& p) noexcept {
    acquiring = true;
    while (held_up) {
      std::this_thread::yield();
    }
    return host_backend::acquire(bytes, p);
  }

  static inline std::atomic<bool> held_up{false};
  static inline std::atomic<bool> acquiring{false};
};

}  // namespace

TEST_CASE("a child does not wait for memory that another thread was about to bring") {
  pagesift::pool_options options;
  options.limit_bytes = 8 * mebibyte;
  pagesift::basic_pool<slow_host> pool{options};
  slow_host::held_up = true;
  std::thread other{[&] { pool.deallocate(pool.allocate(6 * mebibyte, {}), 6 * mebibyte, {}); }};
  while (!slow_host::acquiring) {
    std::this_thread::yield();
  }
  CHECK(code_of_child([&] {
          slow_host::held_up = false;
          pool.deallocate(pool.allocate(8 * mebibyte, {}), 8 * mebibyte, {});
          return 0;
        }) == 0);
  slow_host::held_up = false;
  other.join();
}

TEST_CASE("a child forked while somebody is asked for memory can ask, and forget whom to ask") {
  pagesift::simulated_device device;
  const pagesift::memory_place place = pagesift::simulated_backend{device}.place();
  std::atomic<bool> asked{false};
  std::atomic<bool> go{false};
  auto slow = pagesift::on_shortage_of(place, [&](std::size_t) {
    asked = true;
    while (!go) {
      std::this_thread::yield();
    }
    return std::size_t{1};
  });
  std::thread asker{[&] { (void)pagesift::ask_for_memory(place, 1); }};
  while (!asked) {
    std::this_thread::yield();
  }
  CHECK(code_of_child([&] {
          go = true;
          const bool given = pagesift::ask_for_memory(place, 1) == 1;
          slow.reset();
          return given && pagesift::ask_for_memory(place, 1) == 0 ? 0 : 1;
        }) == 0);
  go = true;
  asker.join();
}
