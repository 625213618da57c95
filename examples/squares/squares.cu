// Squares large arrays on the device again and again, as in a question about running out of memory:
// in fresh buffers for each call, and in one buffer that stays. With Thrust's default allocator
// each buffer costs a call of the device's allocator; with a pool only the first ones do.
//
// nvcc builds this for the GPU. A C++ compiler builds it for Thrust's OpenMP system, where host
// memory takes the place of device memory.
#include "host_array.hpp"
#include "jobs.hpp"
#include "memory.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "report.hpp"

#include <exception>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>

namespace squares {
namespace {

#ifdef PAGESIFT_DEVICE_IS_CUDA

constexpr std::size_t arrays_on_host = 2;

/// \throws std::runtime_error where there is no GPU, lest that be taken for a lack of memory.
std::string machine_name() {
  cudaDeviceProp properties{};
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaGetDeviceProperties(&properties, device);
  }
  if (error != cudaSuccess) {
    throw std::runtime_error{std::string{"no GPU can be used: "} + cudaGetErrorString(error)};
  }
  return properties.name;
}

#else

constexpr std::size_t arrays_on_host = 4;  // the device's two are on the host as well

std::string machine_name() { return "host memory, Thrust on OpenMP"; }

#endif

/// Both jobs, one after the other. Whatever goes wrong, the device memory is given back.
template <typename Memory>
run_report run(Memory& memory, const options& chosen, host_array& numbers, host_array& results,
               progress& shown) {
  try {
    run_report done{Memory::name, {}, {}};
    done.jobs.push_back(fresh_buffers(memory, numbers, results, shown));
    done.jobs.push_back(in_place(memory, chosen.rounds, numbers, results, shown));
    done.memory = memory.stats();
    return done;
  } catch (const std::exception&) {
    shown.hide();
    std::cerr << "squares: after the failure " << memory.stats().in_use
              << " bytes of device memory are in use\n";
    throw;
  }
}

/// All host memory is taken at first, so that a later shortage is the device's.
report run_all(const options& chosen) {
  report whole{machine_name(), chosen.n, {}};
  require_host_memory(arrays_on_host, chosen.n);
  host_array numbers{chosen.n};
  host_array results{chosen.n};
  const std::size_t calls = 3 + chosen.rounds;
  progress shown{calls * (chosen.with_default ? 1 : 0) + calls * (chosen.with_pool ? 1 : 0)};
  std::cout << whole.machine << ", " << chosen.n << " doubles in each array" << std::endl;
  if (chosen.with_default) {
    default_memory memory;
    whole.runs.push_back(run(memory, chosen, numbers, results, shown));
  }
  if (chosen.with_pool) {
    pool_memory memory{chosen.memory_limit_bytes};
    whole.runs.push_back(run(memory, chosen, numbers, results, shown));
  }
  return whole;
}

void run_and_report(const options& chosen) {
  json_file json{chosen.json_file};
  const report whole = run_all(chosen);
  for (const run_report& run : whole.runs) {
    print(run);
  }
  json.write(whole);
}

}  // namespace
}  // namespace squares

int main(int argc, char** argv) {
  try {
    const squares::command command = squares::parse(argc, argv);
    if (command.run) {
      squares::run_and_report(*command.run);
    }
    return command.exit_code;
  } catch (const pagesift::out_of_memory& error) {
    std::cerr << "squares: " << error.what() << '\n';
  } catch (const std::bad_alloc&) {
    std::cerr << "squares: too little host memory\n";
  } catch (const std::exception& error) {
    std::cerr << "squares: " << error.what() << '\n';
  }
  return 1;
}
