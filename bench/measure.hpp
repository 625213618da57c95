// Times a workload in its steady state, and reports what the allocator did meanwhile.
#pragma once

#include "figures.hpp"
#include "machine.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <optional>

namespace bench {

using clock = std::chrono::steady_clock;

[[nodiscard]] inline double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

/// An allocator's figures over the timed part of a run; made when the allocator is warm.
template <typename Allocator>
class steady_state {
 public:
  explicit steady_state(const Allocator& allocator)
      : allocator_{allocator}, before_{allocator.report()} {}

  /// Adds the counters to the result. Device allocations are per iteration: 0 is wanted.
  void report(benchmark::State& state) const {
    const figures after = allocator_.report();
    if (after.device_allocations) {
      state.counters["device_allocations"] =
          benchmark::Counter(difference(after.device_allocations, before_.device_allocations),
                             benchmark::Counter::kAvgIterations);
    }
    set(state, "held_bytes", after.held_bytes);
    set(state, "peak_bytes", after.peak_bytes);
    const double hits = difference(after.hits, before_.hits);
    const double requests = hits + difference(after.misses, before_.misses);
    if (requests != 0) {
      state.counters["hit_rate"] = hits / requests;
    }
  }

 private:
  static double difference(std::optional<std::uint64_t> after,
                           std::optional<std::uint64_t> before) {
    return static_cast<double>(after.value_or(0) - before.value_or(0));
  }
  static void set(benchmark::State& state, const char* name, std::optional<std::uint64_t> value) {
    if (value) {
      state.counters[name] = static_cast<double>(*value);
    }
  }

  const Allocator& allocator_;
  figures before_;
};

/// Times `step()` round by round; `prepare()` runs before each round, untimed. For rounds of a few
/// microseconds and more: reading the clock twice costs about 50 ns.
template <typename Allocator, typename Prepare, typename Step>
void time_rounds(benchmark::State& state, const Allocator& allocator, Prepare prepare, Step step) {
  for (int round = 0; round < Allocator::warm_up_rounds; ++round) {
    prepare();
    step();
  }
  synchronize();
  const steady_state steady{allocator};
  for ([[maybe_unused]] auto _ : state) {
    prepare();
    const clock::time_point start = clock::now();
    step();
    state.SetIterationTime(seconds_since(start));
  }
  steady.report(state);
}

/// Times `state.max_iterations` or more steps at one go: `steps(count)` does `count` of them, where
/// `count` is a multiple of `multiple`. For steps too short to be timed one by one.
template <typename Allocator, typename Steps>
void time_batch(benchmark::State& state, const Allocator& allocator, std::int64_t multiple,
                Steps steps) {
  for (int round = 0; round < Allocator::warm_up_rounds; ++round) {
    steps(multiple);
  }
  synchronize();
  const steady_state steady{allocator};
  const std::int64_t count = (state.max_iterations + multiple - 1) / multiple * multiple;
  while (state.KeepRunningBatch(count)) {
    const clock::time_point start = clock::now();
    steps(count);
    state.SetIterationTime(seconds_since(start));
  }
  steady.report(state);
}

}  // namespace bench
