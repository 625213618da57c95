// Vector clocks of the simulated device: what is known to have happened before what.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pagesift::simulation {

/// A stream's place in the clocks. Given to another stream once nobody can ask about the first.
using lane_index = std::size_t;

/// Position within one lane, counted up by everything submitted there; never goes back.
using tick_count = std::uint64_t;

/// For each lane, up to which tick it is known to have come. Lanes never heard of are at 0.
class vector_clock {
 public:
  [[nodiscard]] tick_count at(lane_index lane) const noexcept {
    const auto known = std::lower_bound(known_.begin(), known_.end(), lane, before);
    return known != known_.end() && known->lane == lane ? known->tick : 0;
  }

  /// Learns that `lane` has come to `tick`.
  void advance(lane_index lane, tick_count tick) {
    const auto known = std::lower_bound(known_.begin(), known_.end(), lane, before);
    if (known != known_.end() && known->lane == lane) {
      known->tick = std::max(known->tick, tick);
    } else {
      known_.insert(known, {lane, tick});
    }
  }

  /// Learns everything `other` knows.
  void join(const vector_clock& other) {
    for (const entry& known : other.known_) {
      advance(known.lane, known.tick);
    }
  }

 private:
  struct entry {
    lane_index lane;
    tick_count tick;
  };

  static bool before(const entry& known, lane_index lane) noexcept { return known.lane < lane; }

  std::vector<entry> known_;  // ascending by lane
};

}  // namespace pagesift::simulation
