// The lock of a cache: biased to one thread, suspended, taken away.
//
// Where the system has no asymmetric fence, under ThreadSanitizer and Valgrind too, no lock is ever
// biased: what is said here of a bias is then left out, and the tests of exclusion are of the lock
// that all threads share.
#include <pagesift/front/cache_lock.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <thread>

using pagesift::asymmetric_fence;
using pagesift::cache_guard;
using pagesift::cache_lock;
using pagesift::this_thread_mark;
using pagesift::thread_mark;

namespace {

/// Stands for a thread that is not there.
thread_mark somebody_else() {
  static const char mark = 0;
  return &mark;
}

/// What the slow path does with each cache.
class claimed {
 public:
  explicit claimed(cache_lock& lock) : lock_{lock} {
    if (lock_.claim(this_thread_mark())) {
      asymmetric_fence::heavy();
    }
    lock_.wait_for_owner();
  }
  ~claimed() { lock_.unclaim(); }
  claimed(const claimed&) = delete;
  claimed& operator=(const claimed&) = delete;

 private:
  cache_lock& lock_;
};

/// A number that only the lock guards: additions are lost where two threads are inside at once.
struct guarded_count {
  cache_lock lock;
  std::uint64_t value = 0;

  /// Precondition: the lock is held. Takes long enough for another that is inside too to be late.
  void add() {
    const std::uint64_t before = value;
    for (int i = 0; i < 32; ++i) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    value = before + 1;
  }
};

/// The calling thread is inside as the owner and leaves while another one holds the lock by what
/// `hold` makes, which must not be before.
template <typename Hold>
void leave_while_another(Hold hold) {
  if (!asymmetric_fence::available()) {
    return;
  }
  cache_lock lock;
  lock.bias_to(this_thread_mark());
  REQUIRE(lock.enter(this_thread_mark()));
  std::atomic<bool> begun{false};
  int order = 0;
  std::thread other{[&] {
    begun = true;
    const auto held = hold(lock);
    CHECK(order == 1);
  }};
  while (!begun) {
    std::this_thread::yield();
  }
  std::this_thread::yield();
  order = 1;
  lock.leave();
  other.join();
}

}  // namespace

TEST_CASE("a lock is biased exactly where the system has an asymmetric fence") {
  cache_lock lock;
  CHECK_FALSE(lock.enter(this_thread_mark()));
  lock.bias_to(this_thread_mark());
  CHECK(lock.biased_to(this_thread_mark()) == asymmetric_fence::available());
  const bool entered = lock.enter(this_thread_mark());
  CHECK(entered == asymmetric_fence::available());
  if (entered) {
    lock.leave();
  }
}

TEST_CASE("only the owner enters, as often as it likes") {
  cache_lock lock;
  lock.bias_to(this_thread_mark());
  CHECK_FALSE(lock.enter(somebody_else()));
  for (int i = 0; i < 3 && asymmetric_fence::available(); ++i) {
    REQUIRE(lock.enter(this_thread_mark()));
    lock.leave();
  }
}

TEST_CASE("a claim keeps the owner out while it lasts and leaves it the bias") {
  cache_lock lock;
  lock.bias_to(this_thread_mark());
  std::thread{[&] {
    const claimed claim{lock};
    std::thread{[&] { CHECK_FALSE(lock.try_lock(this_thread_mark())); }}.join();
    CHECK_FALSE(lock.enter(somebody_else()));
  }}.join();
  {
    const claimed mine{lock};
    CHECK_FALSE(lock.enter(this_thread_mark()));
  }
  const bool entered = lock.enter(this_thread_mark());
  CHECK(entered == asymmetric_fence::available());
  if (entered) {
    lock.leave();
  }
}

TEST_CASE("only a claim against another thread's bias asks for the fence") {
  cache_lock unbiased;
  CHECK_FALSE(unbiased.claim(this_thread_mark()));
  unbiased.unclaim();
  cache_lock mine;
  mine.bias_to(this_thread_mark());
  CHECK_FALSE(mine.claim(this_thread_mark()));
  mine.unclaim();
  cache_lock others;
  others.bias_to(somebody_else());
  CHECK(others.claim(this_thread_mark()) == asymmetric_fence::available());
  others.unclaim();
}

TEST_CASE("a claim waits until the owner has left") {
  leave_while_another([](cache_lock& lock) { return claimed{lock}; });
}

TEST_CASE("whoever else locks takes the bias away for good") {
  for (const bool trying : {false, true}) {
    cache_lock lock;
    lock.bias_to(this_thread_mark());
    std::thread{[&] {
      if (trying) {
        REQUIRE(lock.try_lock(this_thread_mark()));
      } else {
        lock.lock(this_thread_mark());
      }
      lock.unlock();
    }}.join();
    CHECK_FALSE(lock.biased_to(this_thread_mark()));
    CHECK_FALSE(lock.enter(this_thread_mark()));
    CHECK(lock.try_lock(this_thread_mark()));
    lock.unlock();
  }
}

TEST_CASE("the owner that could not enter locks without losing the bias") {
  cache_lock lock;
  lock.bias_to(this_thread_mark());
  lock.lock(this_thread_mark());
  lock.unlock();
  CHECK(lock.biased_to(this_thread_mark()) == asymmetric_fence::available());
}

TEST_CASE("taking the bias away waits until the owner has left") {
  leave_while_another([](cache_lock& lock) { return cache_guard{lock}; });
}

TEST_CASE("a guard locks for the owner and for others") {
  cache_lock lock;
  lock.bias_to(this_thread_mark());
  {
    const cache_guard guard{lock};
    if (!asymmetric_fence::available()) {
      CHECK_FALSE(lock.try_lock(somebody_else()));
    }
  }
  std::thread{[&] { const cache_guard guard{lock}; }}.join();
  const cache_guard guard{lock};
  CHECK_FALSE(lock.try_lock(somebody_else()));
}

TEST_CASE("nobody is inside beside the owner, neither claiming nor locking") {
  constexpr std::uint64_t turns = 300000;
  constexpr std::uint64_t claims = 3000;
  guarded_count count;
  std::atomic<bool> biased{false};
  std::atomic<bool> over{false};
  std::thread owner{[&] {
    count.lock.bias_to(this_thread_mark());
    biased = true;
    for (std::uint64_t i = 0; i < turns; ++i) {
      const cache_guard guard{count.lock};
      count.add();
    }
    over = true;
  }};
  while (!biased) {
    std::this_thread::yield();
  }
  std::uint64_t mine = 0;
  SUBCASE("claiming") {
    for (; mine < claims || !over; ++mine) {
      const claimed claim{count.lock};
      count.add();
    }
  }
  SUBCASE("locking") {
    for (; mine < claims || !over; ++mine) {
      const cache_guard guard{count.lock};
      count.add();
    }
  }
  owner.join();
  CHECK(count.value == turns + mine);
}

TEST_CASE("the bias is taken away at any moment of the owner's coming and going") {
  constexpr std::size_t rounds = 4000;
  constexpr std::uint64_t owners_turns = 50;
  std::deque<guarded_count> counts(rounds);
  for (guarded_count& count : counts) {
    count.lock.bias_to(this_thread_mark());
  }
  std::atomic<std::size_t> arrived{0};
  const auto meet = [&arrived](std::size_t round) {
    ++arrived;
    while (arrived < 2 * (round + 1)) {
      std::this_thread::yield();
    }
  };
  std::thread taker{[&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      meet(i);
      for (std::size_t wait = 0; wait < i % 64; ++wait) {
        std::atomic_signal_fence(std::memory_order_seq_cst);  // not all at the same moment
      }
      const cache_guard guard{counts[i].lock};
      counts[i].add();
    }
  }};
  for (std::size_t i = 0; i < rounds; ++i) {
    meet(i);
    for (std::uint64_t turn = 0; turn < owners_turns; ++turn) {
      const cache_guard guard{counts[i].lock};
      counts[i].add();
    }
  }
  taker.join();
  for (const guarded_count& count : counts) {
    REQUIRE(count.value == owners_turns + 1);
  }
}

TEST_CASE("a thread that comes after the owner has ended may have its mark, and enters as it") {
  guarded_count count;
  std::thread{[&] { count.lock.bias_to(this_thread_mark()); }}.join();
  for (int i = 0; i < 50; ++i) {  // the system gives out the same place for each, mostly
    std::thread{[&] {
      const cache_guard guard{count.lock};
      count.add();
    }}.join();
  }
  CHECK(count.value == 50);
}
