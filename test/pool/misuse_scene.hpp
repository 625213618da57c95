// A pool in checked mode whose reports are kept.
#pragma once

#include "world.hpp"

#include <utility>
#include <vector>

using pagesift::misuse;
using pagesift::misuse_report;

inline pool_options checked_options(std::vector<misuse_report>& reports) {
  pool_options options;
  options.checks = pagesift::checks::full;
  options.on_misuse = [&reports](const misuse_report& r) { reports.push_back(r); };
  return options;
}

/// A simulated device and a checked pool on it.
struct misuse_scene {
  explicit misuse_scene(const pool_options& more = {}, const simulated_options& device = {})
      : w{options(more), device}, s{w.device.create_stream()} {}

  /// The reports so far, which are then forgotten.
  std::vector<misuse_report> take_reports() { return std::exchange(reports, {}); }

  /// The only report since the last look.
  misuse_report only_report() {
    REQUIRE(reports.size() == 1);
    return take_reports().front();
  }

  std::vector<misuse_report> reports;
  world w;
  simulated_stream s;

 private:
  pool_options options(pool_options more) {
    more.checks = pagesift::checks::full;
    more.on_misuse = [this](const misuse_report& r) { reports.push_back(r); };
    return more;
  }
};
