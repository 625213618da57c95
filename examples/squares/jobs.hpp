// The two jobs, over any of the memories of memory.hpp.
#pragma once

#include "host_array.hpp"
#include "progress.hpp"
#include "report.hpp"

#include <thrust/functional.h>
#include <thrust/transform.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>

namespace squares {

/// Throws where `squares` are not exactly the squares of `numbers`, as the host computes them.
inline void require_squares(const host_array& numbers, const host_array& squares) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (squares[i] != numbers[i] * numbers[i]) {
      throw std::runtime_error{"wrong result: number " + std::to_string(i) + " is " +
                               std::to_string(numbers[i]) + ", its square came back as " +
                               std::to_string(squares[i])};
    }
  }
}

inline void require_equal(const host_array& expected, const host_array& got) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] != got[i]) {
      throw std::runtime_error{"wrong result: square " + std::to_string(i) + " should be " +
                               std::to_string(expected[i]) + ", came back as " +
                               std::to_string(got[i])};
    }
  }
}

/// Runs `call()`, which leaves its results on the host, and notes its time and what it cost.
template <typename Memory, typename Call>
call_report measure(const Memory& memory, Call call) {
  const std::uint64_t before = memory.stats().backend_allocations;
  const auto start = std::chrono::steady_clock::now();
  call();
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  return {time.count(), memory.stats().backend_allocations - before};
}

/// Squares `numbers` on the device, in buffers made for this call alone.
template <typename Memory>
void square_in_fresh_buffers(Memory& memory, const host_array& numbers, host_array& results) {
  auto inputs = memory.make(numbers.size());
  inputs.scatter(numbers.data(), numbers.size());
  auto outputs = memory.make(numbers.size());
  thrust::transform(memory.policy(), inputs.begin(), inputs.end(), outputs.begin(),
                    thrust::square<double>{});
  outputs.gather(results.data(), results.size());
}

/// Job 1: the numbers 0.0, 0.001, 0.002 and so on, squared in three calls.
template <typename Memory>
job_report fresh_buffers(Memory& memory, host_array& numbers, host_array& results,
                         progress& shown) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<double>(i) * 0.001;
    results[i] = 0;  // the system finds its memory now, not in the first call
  }
  job_report job{"fresh buffers", {}};
  for (int call = 1; call <= 3; ++call) {
    shown.begin(std::string{Memory::name} + ", fresh buffers, call " + std::to_string(call));
    job.calls.push_back(
        measure(memory, [&] { square_in_fresh_buffers(memory, numbers, results); }));
    require_squares(numbers, results);
    shown.end();
    shown.hide();
    std::cout << call << std::endl;
  }
  return job;
}

/// Squares `numbers` where they are, on the device and then on the host.
template <typename Memory, typename Buffer>
void square_in_place(Memory& memory, Buffer& buffer, host_array& numbers) {
  buffer.scatter(numbers.data(), numbers.size());
  thrust::transform(memory.policy(), buffer.begin(), buffer.end(), buffer.begin(),
                    thrust::square<double>{});
  buffer.gather(numbers.data(), numbers.size());
}

/// Job 2: one buffer for all rounds; each squares new random numbers in place.
template <typename Memory>
job_report in_place(Memory& memory, std::size_t rounds, host_array& numbers, host_array& expected,
                    progress& shown) {
  std::mt19937_64 random{1};
  auto buffer = memory.make(numbers.size());
  job_report job{"in place", {}};
  for (std::size_t round = 1; round <= rounds; ++round) {
    shown.begin(std::string{Memory::name} + ", in place, round " + std::to_string(round));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = static_cast<double>(random() >> 11) * 0x1p-53;  // from 0 to 1
      expected[i] = numbers[i] * numbers[i];
    }
    job.calls.push_back(measure(memory, [&] { square_in_place(memory, buffer, numbers); }));
    require_equal(expected, numbers);
    shown.end();
    shown.hide();
    std::cout << "iter " << round << " passed" << std::endl;
  }
  return job;
}

}  // namespace squares
