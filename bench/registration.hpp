// How a workload becomes benchmarks named `workload/allocator/argument`.
#pragma once

#include "allocators/all.hpp"
#include "machine.hpp"
#include "setup.hpp"

#include <benchmark/benchmark.h>

#include <exception>
#include <string>

namespace bench {

/// Repetitions of what takes a second or more for one; the rest runs as often as main.cpp says.
inline constexpr int few_repetitions = 3;

/// Registers `body(state)`, which makes its allocator itself. Whatever it throws, such as a
/// shortage of memory, is the benchmark's result and does not end the program.
template <typename Body>
benchmark::internal::Benchmark* add_unmade(const std::string& workload,
                                           const std::string& allocator,
                                           const std::string& argument, Body body) {
  const auto guarded = [body](benchmark::State& state) {
    try {
      body(state);
    } catch (const std::exception& error) {
      state.SkipWithError(error.what());
    }
  };
  const std::string name = workload + '/' + allocator + '/' + argument;
  return benchmark::RegisterBenchmark(name.c_str(), guarded)->UseManualTime();
}

/// Registers `body(state, allocator)`; each run of it gets an allocator of its own.
template <typename Allocator, typename Body>
benchmark::internal::Benchmark* add(const std::string& workload, const std::string& argument,
                                    Body body, const setup& wanted = {}) {
  return add_unmade(workload, Allocator::name, argument, [body, wanted](benchmark::State& state) {
    Allocator allocator = make_allocator<Allocator>(wanted);
    body(state, allocator);
  });
}

/// Notes in the results' context why an allocator does not run a workload.
template <typename... Allocators>
void leave_out(allocator_list<Allocators...>, const std::string& workload,
               const std::string& reason) {
  (benchmark::AddCustomContext("left out: " + workload + '/' + Allocators::name, reason), ...);
}

void register_hot_pair();
void register_random();
void register_random_cold();
void register_utilisation();
void register_stall();
void register_cross_stream();
void register_threads();
void register_thrust_square();
void register_thrust_sort();
void register_thrust_reduce();
void register_thrust_scan();
void register_thrust_unique();
#ifdef PAGESIFT_DEVICE_IS_CUDA
void register_cub_reduce();
#endif

}  // namespace bench
