#include "report.hpp"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <iomanip>
#include <iostream>
#include <stdexcept>

namespace squares {
namespace {

void print(const job_report& job) {
  for (std::size_t i = 0; i < job.calls.size(); ++i) {
    const call_report& call = job.calls[i];
    std::cout << "  " << std::left << std::setw(14) << job.name << std::right << std::setw(3)
              << i + 1 << std::fixed << std::setprecision(3) << std::setw(13) << call.milliseconds
              << " ms  device allocations: " << call.device_allocations << '\n';
  }
}

nlohmann::json to_json(const job_report& job) {
  nlohmann::json calls = nlohmann::json::array();
  for (const call_report& call : job.calls) {
    calls.push_back(
        {{"milliseconds", call.milliseconds}, {"device_allocations", call.device_allocations}});
  }
  return {{"name", job.name}, {"calls", calls}};
}

nlohmann::json to_json(const run_report& run) {
  nlohmann::json jobs = nlohmann::json::array();
  for (const job_report& job : run.jobs) {
    jobs.push_back(to_json(job));
  }
  return {{"allocator", run.allocator},
          {"jobs", jobs},
          {"memory", nlohmann::json::parse(run.memory.to_json())}};
}

}  // namespace

void print(const run_report& run) {
  std::cout << "allocator: " << run.allocator << '\n';
  for (const job_report& job : run.jobs) {
    print(job);
  }
  const pagesift::pool_stats& m = run.memory;
  std::cout << "  device allocations: " << m.backend_allocations << ", hits " << m.hits << ", held "
            << m.held << ", in use " << m.in_use << ", idle " << m.idle << ", peak held "
            << m.peak_held << ", peak in use " << m.peak_in_use << " bytes\n";
}

json_file::json_file(const std::string& name) : name_{name} {
  if (!name_.empty()) {
    file_.open(name_);
    if (!file_) {
      throw std::runtime_error{"cannot write " + name_ + ": " + std::strerror(errno)};
    }
  }
}

void json_file::write(const report& whole) {
  if (name_.empty()) {
    return;
  }
  nlohmann::json runs = nlohmann::json::array();
  for (const run_report& run : whole.runs) {
    runs.push_back(to_json(run));
  }
  const nlohmann::json all = {{"machine", whole.machine}, {"n", whole.n}, {"runs", runs}};
  file_ << all.dump(2) << '\n' << std::flush;
  if (!file_) {
    throw std::runtime_error{"cannot write " + name_ + ": " + std::strerror(errno)};
  }
}

}  // namespace squares
