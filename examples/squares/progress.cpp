#include "progress.hpp"

#include <iostream>
#include <unistd.h>

namespace squares {

progress::progress(std::size_t steps) : watched_{isatty(STDERR_FILENO) == 1}, steps_{steps} {}

void progress::begin(const std::string& what) {
  constexpr std::size_t width = 30;
  if (watched_) {
    const std::size_t filled = width * done_ / steps_;
    std::cerr << "\r\033[K[" << std::string(filled, '#') << std::string(width - filled, '.') << "] "
              << done_ << " of " << steps_ << ": " << what << std::flush;
  }
}

void progress::hide() {
  if (watched_) {
    std::cerr << "\r\033[K" << std::flush;
  }
}

}  // namespace squares
