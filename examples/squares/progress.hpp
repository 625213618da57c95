// A bar that shows how far the work is, where somebody watches.
#pragma once

#include <cstddef>
#include <string>

namespace squares {

/// Draws on standard error where that is a terminal, and nothing elsewhere.
class progress {
 public:
  explicit progress(std::size_t steps);
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  ~progress() { hide(); }

  /// Step `what` begins.
  void begin(const std::string& what);
  /// A step has ended.
  void end() { ++done_; }
  /// Takes the bar away, so that a line can be printed; `begin` draws it again.
  void hide();

 private:
  bool watched_;
  std::size_t steps_;
  std::size_t done_ = 0;
};

}  // namespace squares
