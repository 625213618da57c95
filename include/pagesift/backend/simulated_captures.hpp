// Streams of the simulated device that are recording a graph, and what breaks the recording.
#pragma once

#include <pagesift/backend/simulated_streams.hpp>

#include <map>
#include <thread>

namespace pagesift {

/// Whose unsafe calls break a capture: any thread's, the capturing thread's, nobody's.
enum class simulated_capture_mode : unsigned char { global, own_thread, relaxed };

namespace simulation {

/// The captures in progress. A broken one stays in progress until it is ended.
class capture_set {
 public:
  void begin(const stream& s, simulated_capture_mode mode) {
    captures_[&s] = {mode, std::this_thread::get_id(), true};
  }

  void end(const stream& s) { captures_.erase(&s); }

  [[nodiscard]] bool capturing(const stream& s) const { return captures_.count(&s) != 0; }

  /// Whether `s` is capturing and nothing has broken the capture.
  [[nodiscard]] bool valid(const stream& s) const {
    const auto found = captures_.find(&s);
    return found != captures_.end() && found->second.valid;
  }

  void break_one(const stream& s) { captures_[&s].valid = false; }

  /// This thread makes a call that an unsafe call of a capture is: memory taken or given back, or
  /// the state of an event asked for. Returns whether that broke a capture.
  bool unsafe_call() {
    bool broke = false;
    for (auto& [s, running] : captures_) {
      const bool own_thread = running.mode == simulated_capture_mode::own_thread &&
                              running.thread == std::this_thread::get_id();
      if (running.mode == simulated_capture_mode::global || own_thread) {
        running.valid = false;
        broke = true;
      }
    }
    return broke;
  }

  /// The whole context is waited for, which no mode permits. Returns whether that broke a capture.
  bool fence() {
    for (auto& [s, running] : captures_) {
      running.valid = false;
    }
    return !captures_.empty();
  }

 private:
  struct capture {
    simulated_capture_mode mode;
    std::thread::id thread;
    bool valid;
  };

  std::map<const stream*, capture> captures_;
};

}  // namespace simulation
}  // namespace pagesift
