// One program of translation units that were built for different device systems.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pagesift_test {

/// An order that all parts share by name: a sort by it is one function to the linker unless the
/// policies' types differ.
struct by_last_digits {
  bool operator()(int a, int b) const { return a % 1000 < b % 1000; }
};

/// What one translation unit did with pagesift::device and with a pool's own policy.
struct system_report {
  std::string policy_type;
  std::string buffer_type;
  std::vector<int> sorted_by_device;
  std::vector<int> sorted_by_pool;
  /// Blocks that a sort took from the pool: the systems need more or fewer.
  std::uint64_t blocks_for_pool_policy = 0;
  std::uint64_t blocks_for_thrust_policy = 0;
};

system_report run_on_cpp(std::vector<int> values);
system_report run_on_omp(std::vector<int> values);
system_report run_on_tbb(std::vector<int> values);

}  // namespace pagesift_test
