// Threads in their caches, and one that stops all of them over and over.
//
// Most pairs are of trusted bound streams: they make no call that would order the threads for the
// pool. The counters show a lock that lets two in: they are plain numbers, and none may be lost.
// Under ThreadSanitizer and Valgrind caches have plain locks; biased ones are tested by the normal
// build alone.
#include "world.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#ifndef PAGESIFT_THREAD_OPERATIONS
#define PAGESIFT_THREAD_OPERATIONS 100000
#endif

namespace {

using bound = pagesift::bound_stream<simulated_pool>;

/// A block on its way to another thread, which frees it on the stream it was handed out on.
struct parcel {
  void* p;
  std::size_t bytes;
  simulated_stream s;
};

class threads_at_work {
 public:
  explicit threads_at_work(const pool_options& options) : w_{options, busy()} {
    shared_ = w_.device.create_stream();
    w_.show_two_streams();
    allocations_ = 2;
  }

  void run() {
    std::vector<std::thread> users;
    std::atomic<int> working{user_count};
    for (int i = 0; i < user_count; ++i) {
      users.emplace_back([&, i] {
        use(static_cast<std::uint64_t>(i));
        --working;
      });
    }
    disturb(working);
    for (std::thread& user : users) {
      user.join();
    }
    take_parcels_back();
    compare_counters();
  }

 private:
  static constexpr int user_count = 4;

  static simulated_options busy() {
    simulated_options options = with_budget(gibibyte);
    options.on_blocked_wait = pagesift::blocked_wait::opens_gates;
    return options;
  }

  void use(std::uint64_t seed) {
    std::mt19937_64 random{seed};
    simulated_stream mine = w_.device.create_stream();
    bound on_mine = w_.pool->on(mine);
    bound on_shared = w_.pool->on(shared_);
    std::uint64_t allocations = 0;
    for (int i = 0; i < PAGESIFT_THREAD_OPERATIONS; ++i, ++allocations) {
      const std::uint64_t dice = random() % 1024;
      const std::size_t bytes = std::size_t{256} << (dice % 4);
      if (dice < 600) {
        on_mine.deallocate(on_mine.allocate(bytes), bytes);
      } else if (dice < 950) {
        on_shared.deallocate(on_shared.allocate(bytes), bytes);
      } else if (dice < 985) {
        w_.turn(bytes, dice % 2 == 0 ? mine : shared_);
      } else if (dice < 1000) {
        post({w_.allocate(bytes, shared_), bytes, shared_}, dice % mailbox_.size());
      } else if (dice < 1020) {
        w_.pool->deallocate(this, bytes, mine);  // not the pool's
        --allocations;
      } else {
        w_.pool->retire(mine);
        w_.device.destroy_stream(mine);
        mine = w_.device.create_stream();
        on_mine = w_.pool->on(mine);
        w_.turn(bytes, mine);
      }
    }
    allocations_ += allocations;
  }

  /// Leaves a block for another thread, and frees the one that lay there.
  void post(const parcel& fresh, std::size_t place) {
    const parcel* const left = mailbox_[place].exchange(new parcel{fresh});
    give_back(left);
  }

  void give_back(const parcel* left) {
    if (left != nullptr) {
      w_.free(left->p, left->bytes, left->s);
      delete left;
    }
  }

  void take_parcels_back() {
    for (auto& box : mailbox_) {
      give_back(box.exchange(nullptr));
    }
  }

  /// Stops every cache, all the time.
  void disturb(const std::atomic<int>& working) {
    for (std::uint64_t i = 0; working != 0; ++i) {
      if (i % 64 == 0) {
        w_.pool->trim(i % 128 == 0 ? 0 : mebibyte);
      } else if (i % 64 == 32) {
        w_.pool->end_batch();
      } else {
        check_invariants(w_.pool->stats());
      }
    }
  }

  void compare_counters() {
    const pool_stats stats = w_.pool->stats();
    check_invariants(stats);
    CHECK(stats.hits + stats.misses == allocations_);
    CHECK(stats.in_use == 0);
    CHECK(blocks_in_use(stats) == 0);
    w_.check_no_violations();
    w_.pool->trim();
    CHECK(w_.pool->stats().held == 0);
    CHECK(w_.held_bytes() == 0);
  }

  world w_;
  simulated_stream shared_;
  std::array<std::atomic<const parcel*>, 8> mailbox_{};
  std::atomic<std::uint64_t> allocations_{0};
};

}  // namespace

TEST_CASE("threads lose nothing to each other, nor to one that stops all caches over and over") {
  using pagesift::checks;
  threads_at_work{with(checks::trusted, 32 * mebibyte)}.run();
  threads_at_work{with(checks::trusted, 4096)}.run();
  threads_at_work{with(checks::standard, 32 * mebibyte)}.run();
}

TEST_CASE("of threads that free one block at once exactly one succeeds") {
  world w;
  const simulated_stream s = w.device.create_stream();
  constexpr int rounds = 20000;
  std::atomic<void*> target{nullptr};
  std::atomic<int> arrived{0};
  const auto meet = [&arrived](int all_before) {
    ++arrived;
    for (unsigned looks = 1; arrived < all_before + 2; ++looks) {
      if (looks % 4096 == 0) {  // else at once, so that both go on at the same moment
        std::this_thread::yield();
      }
    }
  };
  std::thread other{[&] {
    for (int i = 0; i < rounds; ++i) {
      meet(4 * i);
      w.pool->deallocate(target, 4096, s);
      meet(4 * i + 2);
    }
  }};
  for (int i = 0; i < rounds; ++i) {
    target = w.pool->allocate(4096, s);
    meet(4 * i);
    w.pool->deallocate(target, 4096, s);
    meet(4 * i + 2);
  }
  other.join();
  const pool_stats stats = w.pool->stats();
  CHECK(stats.rejected_frees == rounds);
  CHECK(stats.in_use == 0);
  CHECK(stats.held == 2 * mebibyte);
}

TEST_CASE("threads that end leave their caches to those that come after, also by the same mark") {
  world w{with(pagesift::checks::trusted, 32 * mebibyte)};
  const simulated_stream s = w.device.create_stream();
  const bound on = w.pool->on(s);
  std::uint64_t allocations = 0;
  for (int i = 0; i < 200; ++i) {
    const simulated_stream mine = w.device.create_stream();
    std::thread{[&] {
      const bound on_mine = w.pool->on(mine);
      for (int j = 0; j < 20; ++j) {
        on_mine.deallocate(on_mine.allocate(4096), 4096);
        on.deallocate(on.allocate(4096), 4096);
      }
    }}.join();
    allocations += 40;
    w.device.destroy_stream(mine);
  }
  CHECK(w.pool->stats().hits + w.pool->stats().misses == allocations);
  CHECK(w.pool->stats().in_use == 0);
  w.pool->trim();
  CHECK(w.held_bytes() == 0);
}

namespace {

/// Frees a block when its thread ends, after the thread's other objects have been destroyed.
struct freed_at_exit {
  simulated_pool* pool = nullptr;
  void* p = nullptr;
  simulated_stream s;
  ~freed_at_exit() {
    if (pool != nullptr) {
      pool->deallocate(p, 4096, s);
      pool->deallocate(pool->allocate(4096, s), 4096, s);
    }
  }
};

}  // namespace

TEST_CASE("a thread frees and allocates while it ends") {
  world w;
  const simulated_stream s = w.device.create_stream();
  std::thread{[&] {
    static thread_local freed_at_exit last;  // made before the thread remembers any stream
    last.pool = &*w.pool;
    last.s = s;
    last.p = w.pool->allocate(4096, s);
  }}.join();
  CHECK(w.pool->stats().in_use == 0);
  CHECK(w.pool->stats().rejected_frees == 0);
}
