// Judges what a pool does with memory of the simulated device.
#pragma once

#include <pagesift/backend/simulated_clock.hpp>
#include <pagesift/backend/simulated_mapping.hpp>
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
  /// \param space addresses of acquisitions
  /// \param reserved other addresses, with memory behind them only as `mapped` says
  judge(const address_space& space, const address_space& reserved, const mapped_memory& mapped)
      : space_{space}, reserved_{reserved}, mapped_{mapped} {}

  void report(std::string what) { violations_.push_back(std::move(what)); }

  /// One sentence for each thing that was wrong.
  [[nodiscard]] const std::vector<std::string>& violations() const noexcept { return violations_; }

  /// Work used the bytes; what it submits to knows `position`.
  void used(const void* p, std::size_t bytes, memory_use use, const vector_clock& position) {
    used(byte_range{p, bytes}, use, position);
  }
  void used(byte_range range, memory_use use, const vector_clock& position) {
    uses_.add(range, use, position);
  }

  /// The bytes came into the hands of a user whose work knows `position`.
  void handed_out(const void* p, std::size_t bytes, const vector_clock& position) {
    if (bytes == 0) {
      return;
    }
    const byte_range range{p, bytes};
    if (!space_.holds(range.begin, range.end) && !is_mapped(range)) {
      report("handed out " + name_of(p, bytes) + ", which the backend does not hold");
    }
    if (mapped_.maps_twice(range)) {
      report("handed out " + name_of(p, bytes) +
             ", of which some is mapped at other addresses too");
    }
    if (live_.overlaps(range)) {
      report("handed out " + name_of(p, bytes) + ", of which another user has some");
    }
    report_uncovered("handed out " + name_of(p, bytes) + ", not ordered after ", range, position);
    live_.add(range);
  }

  /// The pool looks at bytes or writes to them, on a stream whose work knows `position`.
  void looked_at(const char* how, const void* p, std::size_t bytes, const vector_clock& position) {
    const byte_range range{p, bytes};
    if (!space_.holds(range.begin, range.end) && !is_mapped(range)) {
      report(std::string{how} + " " + name_of(p, bytes) + ", which the backend does not hold");
    }
    report_uncovered(std::string{how} + " " + name_of(p, bytes) + ", not ordered after ", range,
                     position);
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
    left_behind("released ", p, bytes, host);
    return true;
  }

  // Virtual memory. Each returns whether the call may go on.

  /// The pool gives the addresses back: one reservation, empty.
  bool unreserved(const void* p, std::size_t bytes) {
    if (!reserved_.is_piece(p, bytes)) {
      return refused("unreserved " + name_of(p, bytes) + ", which were not reserved so");
    }
    return !mapped_.maps_any({p, bytes}) ||
           refused("unreserved " + name_of(p, bytes) + ", of which some are mapped");
  }

  bool destroyed(simulated_physical h) {
    return mapped_.bytes_of(h) != 0 ||
           refused("destroyed " + name_of(h) + ", which does not exist");
  }

  /// The pool maps all of `h` behind reserved addresses that nothing is mapped behind.
  bool mapped(const void* p, std::size_t bytes, simulated_physical h) {
    const byte_range range{p, bytes};
    const std::string what = "mapped " + name_of(h) + " behind " + name_of(p, bytes);
    if (bytes == 0 || mapped_.bytes_of(h) != bytes) {
      return refused(what + ", but it has " + std::to_string(mapped_.bytes_of(h)));
    }
    if (range.begin % bytes_of_a_page != 0 || !reserved_.holds(range.begin, range.end)) {
      return refused(what + ", which are not pages of one reservation");
    }
    return !mapped_.maps_any(range) || refused(what + ", of which some are mapped already");
  }

  /// The pool unmaps whole mappings; the host has seen what `host` knows.
  bool unmapped(const void* p, std::size_t bytes, const vector_clock& host) {
    if (bytes == 0 || !mapped_.is_whole({p, bytes})) {
      return refused("unmapped " + name_of(p, bytes) + ", which are not whole mappings");
    }
    left_behind("unmapped ", p, bytes, host);
    return true;
  }

 private:
  static constexpr std::size_t bytes_of_a_page = address_space::piece_alignment;

  bool refused(std::string what) {
    report(std::move(what));
    return false;
  }

  [[nodiscard]] bool is_mapped(byte_range range) const {
    return reserved_.holds(range.begin, range.end) && mapped_.maps_all(range);
  }

  /// The bytes are about to be out of reach: nobody may have them or still be at work on them.
  void left_behind(const std::string& how, const void* p, std::size_t bytes,
                   const vector_clock& host) {
    const byte_range range{p, bytes};
    if (live_.overlaps(range)) {
      report(how + name_of(p, bytes) + ", of which a user has some");
    }
    report_uncovered(how + name_of(p, bytes) + ", the host not having seen the end of ", range,
                     host);
    uses_.forget(range, host);
  }

  [[nodiscard]] static std::string name_of(simulated_physical h) {
    return "piece " + std::to_string(h.number);
  }

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
  const address_space& reserved_;
  const mapped_memory& mapped_;
  use_map uses_;
  live_blocks live_;
  std::vector<std::string> violations_;
};

}  // namespace pagesift::simulation
