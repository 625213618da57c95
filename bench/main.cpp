// pagesift_bench: pagesift beside other allocators. Takes Google Benchmark's own flags.
#include "context.hpp"
#include "registration.hpp"

#include <benchmark/benchmark.h>

#include <iostream>
#include <string>
#include <vector>

namespace {

/// Flags that hold unless the command line says otherwise: repetitions of all benchmarks in one
/// random order, so that a machine that slows down does so for every allocator alike.
std::vector<std::string> with_defaults(int argc, char** argv) {
  std::vector<std::string> arguments{
      argv[0], "--benchmark_repetitions=13", "--benchmark_min_time=0.03",
      "--benchmark_enable_random_interleaving=true", "--benchmark_display_aggregates_only=true"};
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  return arguments;
}

/// Google Benchmark keeps pointers into `arguments`.
bool initialize(std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) {
    pointers.push_back(argument.data());
  }
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  return !benchmark::ReportUnrecognizedArguments(count, pointers.data());
}

void register_all() {
  bench::register_hot_pair();
  bench::register_random();
  bench::register_random_cold();
  bench::register_utilisation();
  bench::register_stall();
  bench::register_cross_stream();
  bench::register_threads();
  bench::register_thrust_square();
  bench::register_thrust_sort();
  bench::register_thrust_reduce();
  bench::register_thrust_scan();
  bench::register_thrust_unique();
#ifdef PAGESIFT_DEVICE_IS_CUDA
  bench::register_cub_reduce();
#endif
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments = with_defaults(argc, argv);
  if (!initialize(arguments)) {
    return 2;
  }
  if (const std::string reason = bench::missing_device(); !reason.empty()) {
    std::cerr << "pagesift_bench: no GPU can be used: " << reason << '\n';
    return 1;
  }
  bench::add_context(argc, argv);
  register_all();
  const bool any = benchmark::RunSpecifiedBenchmarks() != 0;
  benchmark::Shutdown();
  return any ? 0 : 1;
}
