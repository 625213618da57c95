// Where reports of misuse go.
#pragma once

#include <pagesift/pool/options.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace pagesift {

/// Hands a report to the pool's `on_misuse`; without one, prints it on stderr and ends the process,
/// but for leaks, which harm nothing any more. Precondition: no lock is held.
/// What `on_misuse` throws ends the process, since frees must not throw.
inline void tell_misuse(const pool_options& options, const misuse_report& report) noexcept {
  if (options.on_misuse) {
    options.on_misuse(report);
    return;
  }
  std::fputs(report.to_text().c_str(), stderr);
  if (report.kind != misuse::leak) {
    std::fflush(nullptr);
    std::abort();
  }
}

}  // namespace pagesift
