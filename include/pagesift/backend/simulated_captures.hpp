// Streams of the simulated device that are recording a graph, and what breaks the recording.
#pragma once

#include <pagesift/backend/simulated_graphs.hpp>
#include <pagesift/backend/simulated_streams.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace pagesift {

/// Whose unsafe calls break a capture: any thread's, the capturing thread's, nobody's.
enum class simulated_capture_mode : unsigned char { global, own_thread, relaxed };

namespace simulation {

/// A capture in progress. A broken one stays in progress until it is ended.
struct capture {
  simulated_capture_mode mode;
  std::thread::id thread;
  std::uint64_t number;
  graph_ptr graph;
  bool valid = true;
};

/// A stream's part in a capture.
struct capture_member {
  std::shared_ptr<capture> running;
  std::vector<std::uint64_t> position;  // nodes that the next one comes after
};

/// The captures in progress.
class capture_set {
 public:
  void begin(const stream& s, simulated_capture_mode mode, std::uint64_t number, graph_ptr graph) {
    members_[&s] = {std::make_shared<capture>(
                        capture{mode, std::this_thread::get_id(), number, std::move(graph), true}),
                    {}};
  }

  /// Ends the capture that `s` takes part in, for all its streams. Returns its graph, or null where
  /// it was broken.
  [[nodiscard]] graph_ptr end(const stream& s) {
    const capture_member* const ending = member(s);
    if (ending == nullptr) {
      return nullptr;
    }
    const std::shared_ptr<capture> ended = ending->running;
    for (auto i = members_.begin(); i != members_.end();) {
      i = i->second.running == ended ? members_.erase(i) : std::next(i);
    }
    return ended->valid ? ended->graph : nullptr;
  }

  /// The stream's part in a capture, or null.
  [[nodiscard]] capture_member* member(const stream& s) {
    const auto found = members_.find(&s);
    return found == members_.end() ? nullptr : &found->second;
  }

  [[nodiscard]] bool capturing(const stream& s) const { return members_.count(&s) != 0; }

  /// Whether `s` is capturing and nothing has broken the capture.
  [[nodiscard]] bool valid(const stream& s) const {
    const auto found = members_.find(&s);
    return found != members_.end() && found->second.running->valid;
  }

  void break_one(const stream& s) { members_.at(&s).running->valid = false; }

  /// Later work of `to` comes after what `from` has captured; `to` joins the capture if it takes
  /// part in none. Precondition: `from` is capturing.
  void order(const stream& from, const stream& to) {
    const capture_member source = members_.at(&from);
    capture_member& target = members_[&to];
    if (target.running == nullptr) {
      target = source;
    } else if (target.running != source.running) {
      source.running->valid = target.running->valid = false;
    } else {
      for (const std::uint64_t node : source.position) {
        if (std::find(target.position.begin(), target.position.end(), node) ==
            target.position.end()) {
          target.position.push_back(node);
        }
      }
    }
  }

  /// This thread makes a call that an unsafe call of a capture is: memory taken or given back, or
  /// the state of an event asked for. Returns whether that broke a capture.
  bool unsafe_call() {
    bool broke = false;
    for (auto& [s, m] : members_) {
      capture& running = *m.running;
      const bool own_thread = running.mode == simulated_capture_mode::own_thread &&
                              running.thread == std::this_thread::get_id();
      if (running.mode == simulated_capture_mode::global || own_thread) {
        running.valid = false;
        broke = true;
      }
    }
    return broke;
  }

 private:
  std::map<const stream*, capture_member> members_;
};

}  // namespace simulation
}  // namespace pagesift
