// How a workload becomes benchmarks named `workload/allocator/argument`.
#pragma once

#include "allocators/all.hpp"
#include "machine.hpp"

#include <benchmark/benchmark.h>

#include <exception>
#include <string>

namespace bench {

/// Runs `body(state, allocator)` with an allocator made for this run alone. Whatever it throws,
/// such as a shortage of memory, is the benchmark's result and does not end the program.
template <typename Allocator, typename Body>
void run_guarded(benchmark::State& state, const Body& body) {
  try {
    Allocator allocator;
    body(state, allocator);
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

template <typename Allocator, typename Body>
benchmark::internal::Benchmark* add(const std::string& workload, const std::string& argument,
                                    Body body) {
  const std::string name = workload + '/' + Allocator::name + '/' + argument;
  return benchmark::RegisterBenchmark(
             name.c_str(), [body](benchmark::State& state) { run_guarded<Allocator>(state, body); })
      ->UseManualTime();
}

/// Notes in the results' context why an allocator does not run a workload.
template <typename... Allocators>
void leave_out(allocator_list<Allocators...>, const std::string& workload,
               const std::string& reason) {
  (benchmark::AddCustomContext("left out: " + workload + '/' + Allocators::name, reason), ...);
}

void register_hot_pair();
void register_random();
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
