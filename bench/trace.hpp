// Sequences of requests and frees; a random one, the same in every run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace bench {

/// One request or one free. Blocks are named by slots, so that a replay looks nothing up.
struct operation {
  bool allocates = false;
  std::size_t slot = 0;
  std::size_t bytes = 0;
  std::size_t stream = 0;  ///< which of the trace's streams
};

struct trace {
  std::vector<operation> operations;
  std::size_t slots = 0;
  std::size_t streams = 1;
};

/// The most bytes that are in use at any moment of `recorded`.
[[nodiscard]] inline std::size_t peak_live_bytes(const trace& recorded) {
  std::size_t live = 0;
  std::size_t peak = 0;
  for (const operation& next : recorded.operations) {
    live = next.allocates ? live + next.bytes : live - next.bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

/// Gives out the slots of a trace, those that are empty again first.
class empty_slots {
 public:
  [[nodiscard]] std::size_t take(trace& of) {
    if (slots_.empty()) {
      return of.slots++;
    }
    const std::size_t slot = slots_.back();
    slots_.pop_back();
    return slot;
  }
  void give(std::size_t slot) { slots_.push_back(slot); }

 private:
  std::vector<std::size_t> slots_;
};

/// What a trace is made of. Sizes are uniform from 1 to `largest_bytes`; while `live_cap_bytes`
/// allow it, `allocation_percent` of the operations are requests. The trace ends by freeing all.
struct trace_shape {
  std::size_t largest_bytes = 0;
  std::size_t live_cap_bytes = 0;
  std::size_t operations = 0;
  unsigned allocation_percent = 73;
};

class trace_maker {
 public:
  explicit trace_maker(const trace_shape& shape) : shape_{shape} {}

  [[nodiscard]] trace make() {
    for (std::size_t i = 0; i < shape_.operations; ++i) {
      const std::size_t bytes = 1 + below(shape_.largest_bytes);
      const bool wanted = live_.empty() || below(100) < shape_.allocation_percent;
      if (wanted && live_bytes_ + bytes <= shape_.live_cap_bytes) {
        allocate(bytes);
      } else {
        free_any();
      }
    }
    while (!live_.empty()) {
      free_any();
    }
    return trace_;
  }

 private:
  /// The remainder favours small numbers by less than one in 2^33.
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_()) % bound; }

  void allocate(std::size_t bytes) {
    const std::size_t slot = empty_slots_.take(trace_);
    live_bytes_ += bytes;
    live_.push_back({false, slot, bytes});
    trace_.operations.push_back({true, slot, bytes});
  }

  void free_any() {
    operation& chosen = live_[below(live_.size())];
    live_bytes_ -= chosen.bytes;
    trace_.operations.push_back(chosen);
    empty_slots_.give(chosen.slot);
    chosen = live_.back();
    live_.pop_back();
  }

  trace_shape shape_;
  std::mt19937_64 random_{20240229};
  std::vector<operation> live_;  // as the frees they will become
  empty_slots empty_slots_;
  std::size_t live_bytes_ = 0;
  trace trace_;
};

}  // namespace bench
