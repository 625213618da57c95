// What squares measured, for people and as JSON.
#pragma once

#include <pagesift/core/statistics.hpp>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace squares {

/// One call: to the device, squared, and back.
struct call_report {
  double milliseconds = 0;
  std::uint64_t device_allocations = 0;  ///< requests of this call that reached the device
};

struct job_report {
  std::string name;
  std::vector<call_report> calls;
};

/// Both jobs with one allocator, and the allocator's own numbers after them.
struct run_report {
  std::string allocator;
  std::vector<job_report> jobs;
  pagesift::pool_stats memory;
};

struct report {
  std::string machine;
  std::size_t n = 0;
  std::vector<run_report> runs;
};

void print(const run_report& run);

/// A file for the JSON, opened before the work begins. \throws std::runtime_error where it cannot
/// be written.
class json_file {
 public:
  /// \param name empty: nothing is written
  explicit json_file(const std::string& name);
  void write(const report& whole);

 private:
  std::string name_;
  std::ofstream file_;
};

}  // namespace squares
