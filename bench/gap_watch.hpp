// A thread that submits short pieces of work and waits for each, and notes how long that took.
#pragma once

#include "measure.hpp"
#include "short_work.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace bench {

/// Runs from its construction on. The gaps are the times from one completion to the next.
class gap_watch {
 public:
  /// Returns when the first piece of work is done.
  gap_watch() : gaps_(most_gaps), thread_{[this] { run(); }} {
    while (!started_.load()) {
      std::this_thread::yield();
    }
  }
  gap_watch(const gap_watch&) = delete;
  gap_watch& operator=(const gap_watch&) = delete;
  ~gap_watch() { stop(); }

  /// Ends the thread, not before it has seen `fewest_gaps`. \throws what the thread threw
  void finish() {
    stop();
    if (failure_ != nullptr) {
      std::rethrow_exception(failure_);
    }
    gaps_.resize(seen_);
    std::sort(gaps_.begin(), gaps_.end());
  }

  /// The gap in seconds that this share of all gaps does not exceed; 1 for the longest.
  /// \pre finish() was called
  [[nodiscard]] double quantile(double share) const {
    const double last = static_cast<double>(gaps_.size() - 1);
    return std::chrono::duration<double>(gaps_[static_cast<std::size_t>(share * last)]).count();
  }
  [[nodiscard]] std::size_t size() const noexcept { return gaps_.size(); }

 private:
  static constexpr std::size_t fewest_gaps = 2'000;
  static constexpr std::size_t most_gaps = std::size_t{1} << 20;  // ten seconds and more

  void stop() {
    stopping_.store(true);
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  void run() noexcept {
    try {
      const own_stream own;
      clock::time_point last = one_piece(own.get());
      started_.store(true);
      while (seen_ < most_gaps && (seen_ < fewest_gaps || !stopping_.load())) {
        const clock::time_point done = one_piece(own.get());
        gaps_[seen_++] = done - last;
        last = done;
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
    started_.store(true);
  }

  static clock::time_point one_piece(stream s) {
    submit_short_work(s);
    wait_for(s);
    return clock::now();
  }

  std::vector<clock::duration> gaps_;  // filled beforehand, so that no page is missing later
  std::size_t seen_ = 0;
  std::atomic<bool> started_{false};
  std::atomic<bool> stopping_{false};
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace bench
