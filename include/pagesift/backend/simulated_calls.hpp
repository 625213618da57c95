// Calls into the simulated device: their names, counts and log, and the faults planted in them.
#pragma once

#include <pagesift/core/status.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pagesift {

/// The calls of a backend that reach the device.
enum class simulated_call : unsigned char {
  acquire,
  release,
  memory,
  inspect,
  create_event,
  destroy_event,
  record,
  query,
  synchronize,
  wait,
  fence,
  can_map,
  reserve,
  unreserve,
  create,
  destroy,
  map,
  unmap,
  fill,
  copy_to_host,
  look_at_capture,
  nodes_before,
  watch_graph
};

inline constexpr std::size_t simulated_call_count = 23;

[[nodiscard]] constexpr const char* name_of(simulated_call call) noexcept {
  constexpr std::array<const char*, simulated_call_count> names{
      "acquire", "release",      "memory",          "inspect",      "create_event", "destroy_event",
      "record",  "query",        "synchronize",     "wait",         "fence",        "can_map",
      "reserve", "unreserve",    "create",          "destroy",      "map",          "unmap",
      "fill",    "copy_to_host", "look_at_capture", "nodes_before", "watch_graph"};
  return names[static_cast<std::size_t>(call)];
}

/// The error codes of the simulated device; the numbers are CUDA's for the same thing.
namespace simulated_code {
inline constexpr int invalid_value = 1;
inline constexpr int no_memory = 2;
inline constexpr int no_device = 101;
inline constexpr int dead_handle = 400;
inline constexpr int not_ready = 600;
inline constexpr int illegal_address = 700;
inline constexpr int not_supported = 801;
inline constexpr int capture_forbids = 900;
inline constexpr int capture_isolation = 905;
inline constexpr int captured_event = 907;
inline constexpr int deadlock = 999;
}  // namespace simulated_code

[[nodiscard]] inline std::string describe_simulated(int code) {
  switch (code) {
    case 0:
      return "no error";
    case simulated_code::invalid_value:
      return "invalid value";
    case simulated_code::no_memory:
      return "out of memory";
    case simulated_code::no_device:
      return "there is no such device";
    case simulated_code::dead_handle:
      return "the stream or event does not exist";
    case simulated_code::not_ready:
      return "not ready";
    case simulated_code::illegal_address:
      return "a kernel used an illegal address";
    case simulated_code::not_supported:
      return "the device has no virtual memory";
    case simulated_code::capture_forbids:
      return "not permitted while a stream is capturing";
    case simulated_code::capture_isolation:
      return "a capture may not depend on work outside it";
    case simulated_code::captured_event:
      return "the event belongs to a capture";
    case simulated_code::deadlock:
      return "the host waits for work that nobody lets run";
    default:
      return "unknown code";
  }
}

/// A failure planted in a call. The call then has no effect and ends as told.
struct simulated_fault {
  std::optional<simulated_call> call;  ///< nothing: calls of every kind count
  std::uint64_t nth = 1;               ///< 1 is the next such call
  bool repeats = false;                ///< every n-th call fails, not only the first
  outcome result = outcome::failed;    ///< how the call ends
  int code = simulated_code::illegal_address;
};

/// One entry of the call log.
struct simulated_call_record {
  simulated_call call;
  status result;
};

namespace simulation {

/// Counts calls, keeps the log, and says which call has to fail.
class call_book {
 public:
  explicit call_book(bool keeps_log) : keeps_log_{keeps_log} {}

  void plant(const simulated_fault& fault) { planted_.push_back({fault, 0}); }
  void clear_faults() { planted_.clear(); }

  /// Counts one call. Returns how it has to end if a planted fault is due.
  [[nodiscard]] std::optional<status> begin(simulated_call call) {
    ++counts_[static_cast<std::size_t>(call)];
    std::optional<status> ending;
    for (planted_fault& planted : planted_) {
      const simulated_fault& fault = planted.fault;
      if (fault.call.has_value() && *fault.call != call) {
        continue;
      }
      ++planted.calls;
      if (fault.repeats ? planted.calls % fault.nth == 0 : planted.calls == fault.nth) {
        ending = status{fault.result, fault.code, name_of(call)};
      }
    }
    return ending;
  }

  void end(simulated_call call, const status& result) {
    if (keeps_log_) {
      log_.push_back({call, result});
    }
  }

  [[nodiscard]] std::uint64_t count(simulated_call call) const {
    return counts_[static_cast<std::size_t>(call)];
  }

  void reset() {
    counts_.fill(0);
    log_.clear();
  }

  [[nodiscard]] const std::vector<simulated_call_record>& log() const { return log_; }

 private:
  struct planted_fault {
    simulated_fault fault;
    std::uint64_t calls;
  };

  bool keeps_log_;
  std::array<std::uint64_t, simulated_call_count> counts_{};
  std::vector<planted_fault> planted_;
  std::vector<simulated_call_record> log_;
};

}  // namespace simulation
}  // namespace pagesift
