// What has to be known of the life of the process: forks, and its end.
#pragma once

#include <pagesift/core/error.hpp>
#include <pagesift/core/one_per_process.hpp>
#include <pagesift/core/stay_loaded.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <thread>

namespace pagesift {

class process_life;

/// Something that is told when the process forks and when it begins to exit.
class life_member {
 public:
  life_member() noexcept = default;
  life_member(const life_member&) = delete;
  life_member& operator=(const life_member&) = delete;
  virtual ~life_member() = default;

  /// In the thread that forks; one of the other two follows.
  virtual void before_fork() noexcept = 0;
  virtual void after_fork_in_parent() noexcept = 0;
  /// In the only thread of the child. What others held or waited for at the fork they never leave.
  virtual void after_fork_in_child() noexcept = 0;
  /// In the thread that called exit or returned from main; other threads may go on.
  virtual void at_exit() noexcept = 0;

 private:
  friend process_life;
  life_member* next_ = nullptr;
  life_member** link_ = nullptr;
  std::uint64_t number_ = 0;
};

/// The process, as all of its libraries see it. Thread-safe; takes no lock of a member before its
/// own, so a member must hold none when it joins or leaves.
class PAGESIFT_ONE_PER_PROCESS process_life {
 public:
  [[nodiscard]] static process_life& get() noexcept {
    static process_life life;
    return life;
  }

  /// Whether exit's handlers have begun to run.
  [[nodiscard]] bool exiting() const noexcept { return exiting_.load(std::memory_order_acquire); }

  /// Forks between the process that called `watch` first and this one.
  [[nodiscard]] unsigned forks() const noexcept { return forks_.load(std::memory_order_relaxed); }

  /// Sees to it that forks and the exit are noticed from now on.
  void watch() noexcept {
    keep_handlers();
    const std::lock_guard<std::mutex> guard{mutex_};
    begin_watch();
  }

  void join(life_member& m) noexcept {
    keep_handlers();
    const std::lock_guard<std::mutex> guard{mutex_};
    begin_watch();
    m.number_ = joined_.load(std::memory_order_relaxed) + 1;
    joined_.store(m.number_, std::memory_order_relaxed);
    m.next_ = members_;
    m.link_ = &members_;
    if (members_ != nullptr) {
      members_->link_ = &m.next_;
    }
    members_ = &m;
  }

  /// Returns when the member is told nothing any more. Of one that has not joined, does nothing.
  void leave(life_member& m) noexcept {
    const std::lock_guard<std::mutex> guard{mutex_};
    if (m.link_ != nullptr) {
      *m.link_ = m.next_;
      if (m.next_ != nullptr) {
        m.next_->link_ = m.link_;
      }
      m.link_ = nullptr;
    }
  }

  /// Sees to it that the exit is noticed before a static object is destroyed that `m` belongs to
  /// and that is complete by now: handlers run in the opposite order of their registration.
  /// Precondition: no lock of a pool is held; a fork takes those after this one's.
  void notice_exit_before(const life_member& m) noexcept {
    if (m.number_ > noticed_.load(std::memory_order_relaxed)) {
      const std::lock_guard<std::mutex> guard{mutex_};
      register_exit();
    }
  }

  /// While the process exits, lets a thread that has nothing to do any more wait for the end of
  /// it: an exception that nobody catches would make a failure of the exit. Not for long: the
  /// thread that exits may be waiting for this one.
  void rest_while_exiting() const noexcept {
    if (exiting() && pthread_equal(exiting_thread_, pthread_self()) == 0) {
      std::this_thread::sleep_for(std::chrono::seconds{1});
    }
  }

 private:
  constexpr process_life() noexcept = default;

  /// The handlers' code stays. Not with the mutex held: a library that is being loaded may join.
  void keep_handlers() noexcept {
    if (!kept_.exchange(true, std::memory_order_relaxed)) {
      stay_loaded(reinterpret_cast<const void*>(&before_fork));
    }
  }

  /// Precondition: `mutex_` is held. A failure leaves forks or the exit unnoticed.
  void begin_watch() noexcept {
    if (!watching_) {
      watching_ = true;
      (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
      register_exit();
    }
  }

  /// Bounded, for programs that make pools without end. Precondition: `mutex_` is held.
  void register_exit() noexcept {
    constexpr int most_registrations = 1000;
    if (registrations_ < most_registrations && std::atexit(at_exit) == 0) {
      ++registrations_;
    }
    noticed_.store(joined_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }

  template <typename Tell>
  void for_each_member(Tell&& tell) noexcept {
    for (life_member* m = members_; m != nullptr; m = m->next_) {
      tell(*m);
    }
  }

  static void before_fork() noexcept {
    get().mutex_.lock();
    get().for_each_member([](life_member& m) { m.before_fork(); });
  }
  static void after_fork_in_parent() noexcept {
    get().for_each_member([](life_member& m) { m.after_fork_in_parent(); });
    get().mutex_.unlock();
  }
  static void after_fork_in_child() noexcept {
    get().forks_.fetch_add(1, std::memory_order_relaxed);
    get().for_each_member([](life_member& m) { m.after_fork_in_child(); });
    get().mutex_.unlock();
  }
  static void at_exit() noexcept {
    process_life& life = get();
    const std::lock_guard<std::mutex> guard{life.mutex_};
    if (!life.exiting()) {
      life.exiting_thread_ = pthread_self();
      life.exiting_.store(true, std::memory_order_release);
      life.for_each_member([](life_member& m) { m.at_exit(); });
    }
  }

  std::mutex mutex_;
  life_member* members_ = nullptr;
  std::atomic<bool> kept_{false};
  bool watching_ = false;
  int registrations_ = 0;
  std::atomic<std::uint64_t> joined_{0};
  std::atomic<std::uint64_t> noticed_{0};
  std::atomic<unsigned> forks_{0};
  std::atomic<bool> exiting_{false};
  pthread_t exiting_thread_{};
};

}  // namespace pagesift
