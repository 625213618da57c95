// Work of the simulated device: it waits in its stream's queue until somebody lets it run.
#pragma once

#include <pagesift/backend/simulated_streams.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace pagesift::simulation {

/// Runs submitted work lazily: in order within a stream, in random order between streams.
class work_queues {
 public:
  explicit work_queues(std::uint64_t seed) : random_{seed} {}

  void submit(stream& s, step work) {
    if (s.queue.empty()) {
      busy_.push_back(&s);
    }
    s.queue.push_back(std::move(work));
  }

  /// Runs the first work of a random stream that can go on. Returns whether there was one.
  bool run_one() {
    const std::size_t count = busy_.size();
    const std::size_t first = count == 0 ? 0 : random_() % count;
    for (std::size_t i = 0; i < count; ++i) {
      stream& s = *busy_[(first + i) % count];
      if (can_run(s)) {
        run_first(s);
        return true;
      }
    }
    return false;
  }

  void run_all() {
    while (run_one()) {
    }
  }

  /// Runs a random number of steps, up to 8.
  void run_some() {
    for (std::size_t steps = random_() % 9; steps != 0 && run_one(); --steps) {
    }
  }

  /// Runs what must run before `m` is reached, no more. Returns false where a gate is in the way.
  bool run_until(const moment& m) {
    while (!m.reached) {
      if (m.source == nullptr || !run_first_and_what_it_awaits(*m.source)) {
        return false;
      }
    }
    return true;
  }

  /// Runs all work of `s`. Returns false where a gate is in the way.
  bool drain(stream& s) {
    while (!s.queue.empty()) {
      if (!run_first_and_what_it_awaits(s)) {
        return false;
      }
    }
    return true;
  }

  /// Runs all work of all streams. Returns false where a gate is in the way.
  bool drain() {
    run_all();
    return busy_.empty();
  }

 private:
  [[nodiscard]] static bool can_run(const stream& s) {
    const step& first = s.queue.front();
    return first.await == nullptr || first.await->reached;
  }

  bool run_first_and_what_it_awaits(stream& s) {
    const moment_ptr awaited = s.queue.front().await;
    if (awaited != nullptr && !run_until(*awaited)) {
      return false;
    }
    run_first(s);
    return true;
  }

  void run_first(stream& s) {
    const step done = std::move(s.queue.front());  // lets go of what it keeps at the end
    s.queue.pop_front();
    if (done.reach != nullptr) {
      done.reach->reached = true;
    }
    if (s.queue.empty()) {
      busy_.erase(std::find(busy_.begin(), busy_.end(), &s));
    }
  }

  std::mt19937_64 random_;
  std::vector<stream*> busy_;  // streams whose queue is not empty
};

}  // namespace pagesift::simulation
