// Judges what a pool does with memory of the simulated device.
#pragma once

#include <pagesift/backend/simulated_clock.hpp>
#include <pagesift/backend/simulated_memory.hpp>
#include <pagesift/backend/simulated_uses.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pagesift::simulation {

/// Knows every use of every byte, and notes what a real device would not forgive.
class judge {
 public:
  explicit judge(const address_space& space) : space_{space} {}

  void report(std::string what) { violations_.push_back(std::move(what)); }

  /// One sentence for each thing that was wrong.
  [[nodiscard]] const std::vector<std::string>& violations() const noexcept { return violations_; }

  /// Work used the bytes; what it submits to knows `position`.
  void used(const void* p, std::size_t bytes, memory_use use, const vector_clock& position) {
    uses_.add({p, bytes}, use, position);
  }

  /// The bytes came into the hands of a user whose work knows `position`.
  void handed_out(const void* p, std::size_t bytes, const vector_clock& position) {
    if (bytes == 0) {
      return;
    }
    const byte_range range{p, bytes};
    if (!space_.holds(range.begin, range.end)) {
      report("handed out " + name_of(p, bytes) + ", which the backend does not hold");
    }
    if (live_.overlaps(range)) {
      report("handed out " + name_of(p, bytes) + ", of which another user has some");
    }
    report_uncovered("handed out " + name_of(p, bytes) + ", not ordered after ", range, position);
    live_.add(range);
  }

  void handed_back(const void* p, std::size_t bytes) {
    if (bytes != 0 && !live_.remove({p, bytes})) {
      report("a user gave back " + name_of(p, bytes) + ", which was not handed out so");
    }
  }

  /// The pool releases the bytes; the host has seen what `host` knows. Returns whether they are
  /// one acquisition.
  bool released(const void* p, std::size_t bytes, const vector_clock& host) {
    if (!space_.is_piece(p, bytes)) {
      report("released " + name_of(p, bytes) + ", which was not acquired so");
      return false;
    }
    const byte_range range{p, bytes};
    if (live_.overlaps(range)) {
      report("released " + name_of(p, bytes) + ", of which a user has some");
    }
    report_uncovered("released " + name_of(p, bytes) + ", the host not having seen the end of ",
                     range, host);
    uses_.forget(range, host);
    return true;
  }

 private:
  [[nodiscard]] static std::string name_of(const void* p, std::size_t bytes) {
    return std::to_string(bytes) + " bytes at " +
           std::to_string(reinterpret_cast<std::uintptr_t>(p));
  }

  void report_uncovered(const std::string& what, byte_range range, const vector_clock& position) {
    if (const auto use = uses_.uncovered(range, position)) {
      report(what + "a use of them, tick " + std::to_string(use->tick) + " of lane " +
             std::to_string(use->lane));
    }
  }

  const address_space& space_;
  use_map uses_;
  live_blocks live_;
  std::vector<std::string> violations_;
};

}  // namespace pagesift::simulation
