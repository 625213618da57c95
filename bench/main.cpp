// pagesift_bench: pagesift beside other allocators. Takes Google Benchmark's own flags, and
// --trace=FILE for the workload replay (trace_file.hpp says what is in the file).
#include "context.hpp"
#include "registration.hpp"
#include "trace_file.hpp"
#include "workloads/replay.hpp"

#include <benchmark/benchmark.h>

#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

namespace {

/// Flags that hold unless the command line says otherwise: repetitions of all benchmarks in one
/// random order, so that a machine that slows down does so for every allocator alike.
std::vector<std::string> with_defaults(int argc, char** argv) {
  std::vector<std::string> arguments{
      argv[0], "--benchmark_repetitions=13", "--benchmark_min_time=0.02",
      "--benchmark_enable_random_interleaving=true", "--benchmark_display_aggregates_only=true"};
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  return arguments;
}

/// Takes --trace=FILE out of the arguments and registers what is in the file.
bool take_traces(std::vector<std::string>& arguments) {
  const std::string flag = "--trace=";
  for (auto next = arguments.begin(); next != arguments.end();) {
    if (next->compare(0, flag.size(), flag) != 0) {
      ++next;
      continue;
    }
    const std::filesystem::path path = next->substr(flag.size());
    try {
      bench::register_replay(path.stem().string(), bench::read_trace(path.string()));
    } catch (const std::exception& error) {
      std::cerr << "pagesift_bench: " << error.what() << '\n';
      return false;
    }
    next = arguments.erase(next);
  }
  return true;
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
  if (!take_traces(arguments) || !initialize(arguments)) {
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
