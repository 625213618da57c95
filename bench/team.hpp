// Threads that start together, timed from the start to the last one's end.
#pragma once

#include "measure.hpp"

#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace bench {

/// Runs one piece of work in each of several threads, once.
class team {
 public:
  /// Each of `size` threads makes a member, `make(index)`; when all have, `ready()` is called here
  /// and every thread calls its member's `work()`.
  /// \returns seconds from `ready()` to the end of the last `work()`.
  /// \throws what the first thread that failed threw, after all have ended.
  template <typename Make, typename Ready>
  [[nodiscard]] double run(unsigned size, const Make& make, const Ready& ready) {
    std::vector<std::thread> threads;
    for (unsigned index = 0; index < size; ++index) {
      threads.emplace_back([this, index, &make] { run_member(make, index); });
    }
    while (waiting_.load() < size) {
      std::this_thread::yield();
    }
    ready();
    const clock::time_point start = clock::now();
    open_.store(true);
    for (std::thread& thread : threads) {
      thread.join();
    }
    if (failure_ != nullptr) {
      std::rethrow_exception(failure_);
    }
    return std::chrono::duration<double>(last_end_.load() - start).count();
  }

 private:
  template <typename Make>
  void run_member(const Make& make, unsigned index) noexcept {
    bool passed = false;
    try {
      auto member = make(index);
      passed = true;
      pass_gate();
      member.work();
      note_end(clock::now());
    } catch (...) {
      note_failure(std::current_exception());
    }
    if (!passed) {
      pass_gate();
    }
  }

  void pass_gate() noexcept {
    waiting_.fetch_add(1);
    while (!open_.load()) {
      std::this_thread::yield();
    }
  }

  void note_end(clock::time_point end) noexcept {
    clock::time_point last = last_end_.load();
    while (last < end && !last_end_.compare_exchange_weak(last, end)) {
    }
  }

  void note_failure(std::exception_ptr failure) noexcept {
    if (!failed_.exchange(true)) {
      failure_ = std::move(failure);
    }
  }

  std::atomic<unsigned> waiting_{0};
  std::atomic<bool> open_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
  std::atomic<clock::time_point> last_end_{clock::time_point::min()};
};

}  // namespace bench
