// What a player does with captures and graphs, and what it has to remember to keep the rules: which
// graph names which block, which pools were told of a capture, what can still be launched.
#pragma once

#include "scene.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace fuzz {

/// A capture that goes on.
struct running_capture {
  std::size_t origin;          ///< the stream that it was begun on and is ended on, by place
  std::set<std::size_t> told;  ///< pools that have served a request of it, by place
};

/// A graph or an executable in a user's hands; the other of the two is none.
struct graph_holder {
  std::uint64_t capture;  ///< what it does, by the number of the capture
  pagesift::simulated_graph graph;
  pagesift::simulated_executable replay;
};

class graph_user {
 public:
  graph_user(choices& by, scene& of) : by_{by}, scene_{of} {}

  [[nodiscard]] bool in_progress(std::uint64_t capture) const {
    return running_.count(capture) != 0;
  }

  void note_told(std::size_t s, std::size_t pool) {
    if (const auto found = running_.find(capture_of(s)); found != running_.end()) {
      found->second.told.insert(pool);
    }
  }
  /// Whether the pool knows of the capture that `s` takes part in.
  [[nodiscard]] bool told(std::size_t s, std::size_t pool) const {
    const auto found = running_.find(capture_of(s));
    return found != running_.end() && found->second.told.count(pool) != 0;
  }

  /// A stream of the same capture as `s`, which may be `s`.
  [[nodiscard]] std::size_t any_member_beside(std::size_t s) {
    const std::size_t other = by_.below(stream_count);
    return capture_of(other) == capture_of(s) ? other : s;
  }

  /// Returns whether `s`, which may begin one, began a capture.
  bool begin(std::size_t s) {
    if (s < first_created || scene_.streams[s].capturing() || running_.size() >= most_captures) {
      return false;
    }
    scene_.device.begin_capture(handle(s));
    scene_.streams[s].capture = ++captures_;
    running_[captures_] = {s, {}};
    return true;
  }

  /// Ends the capture that `s` takes part in, if any, and keeps what came of it.
  void end(std::size_t s) {
    const std::uint64_t ended = capture_of(s);
    if (ended == 0) {
      return;
    }
    const std::size_t origin = running_.at(ended).origin;
    for (std::size_t i = 0; i < stream_count; ++i) {
      if (i != origin && capture_of(i) == ended) {
        scene_.device.order(handle(i), handle(origin));
      }
    }
    const pagesift::simulated_graph graph = scene_.device.capture_graph(handle(origin));
    for (stream_place& place : scene_.streams) {
      place.capture = place.capture == ended ? 0 : place.capture;
    }
    running_.erase(ended);
    for (live_block& b : scene_.blocks) {  // what is left belongs to those who launch
      b.owner = b.home == ended ? any_eager() : b.owner;
    }
    scene_.expect(graph.number != 0, "a capture was broken");
    if (graph.number != 0) {
      keep(ended, graph);
    }
  }

  void end_all() {
    for (std::size_t s = 0; s < stream_count; ++s) {
      end(s);
    }
  }

  /// Makes a stream take part in a capture, or wait for another that does.
  void fork_or_join() {
    const std::size_t from = by_.below(stream_count);
    const std::size_t to = 1 + by_.below(stream_count - 1);  // the default stream never captures
    const std::uint64_t capture = capture_of(from);
    if (capture == 0 || from == to || (capture_of(to) != capture && capture_of(to) != 0)) {
      return;
    }
    scene_.device.order(handle(from), handle(to));
    scene_.streams[to].capture = capture;
    for (live_block& b : scene_.blocks) {
      if (b.home == capture && b.owner == from && by_.below(2) == 0) {
        b.owner = to;
      }
    }
  }

  /// Launches of one graph follow each other.
  void launch() {
    const std::size_t s = by_.below(stream_count);
    if (held_.empty() || scene_.streams[s].capturing()) {
      return;
    }
    const graph_holder& h = held_[by_.below(held_.size())];
    if (h.replay.number == 0) {
      return;
    }
    const auto last = launched_on_.find(h.capture);
    if (last != launched_on_.end() && scene_.streams[last->second].capturing()) {
      scene_.device.synchronize();
    } else if (last != launched_on_.end() && last->second != s) {
      scene_.device.order(handle(last->second), handle(s));
    }
    scene_.device.launch(h.replay, handle(s));
    launched_on_[h.capture] = s;
    ++launches_;
  }

  void drop_any() {
    if (!held_.empty()) {
      drop(by_.below(held_.size()));
    }
  }

  void instantiate_again() {
    if (!held_.empty() && held_.size() < most_held) {
      const graph_holder h = held_[by_.below(held_.size())];
      if (h.graph.number != 0) {
        held_.push_back({h.capture, {}, scene_.device.instantiate(h.graph)});
      }
    }
  }

  /// Makes an executable launch another graph from now on.
  void update() {
    if (held_.empty()) {
      return;
    }
    graph_holder& changed = held_[by_.below(held_.size())];
    const graph_holder& source = held_[by_.below(held_.size())];
    if (changed.replay.number != 0 && source.graph.number != 0) {
      scene_.device.update(changed.replay, source.graph);
      changed.capture = source.capture;
    }
  }

  /// What was submitted to a stream that goes is before what its heir gets.
  void inherit(std::size_t gone, std::size_t heir) {
    for (auto& [capture, s] : launched_on_) {
      s = s == gone ? heir : s;
    }
  }

  /// A kernel of a capturing stream `s` uses the block, if that is allowed.
  void use_in_capture(live_block& b, std::size_t s) {
    const std::uint64_t capture = capture_of(s);
    if (b.home == capture) {
      order(b.owner, s);
      scene_.device.use(handle(s), b.p, b.bytes);
      order(s, b.owner);
    } else if ((b.named_by == 0 || b.named_by == capture) && !in_progress(b.home)) {
      order(b.named_by == 0 ? s : b.named_on, s);
      scene_.device.use(handle(s), b.p, b.bytes);
      b.named_by = capture;
      b.named_on = s;
    }
  }

  /// Makes sure that the graph of an ended capture can run no more. The host waits.
  void bring_to_an_end(std::uint64_t capture) {
    for (std::size_t i = held_.size(); i-- > 0;) {
      if (held_[i].capture == capture) {
        drop(i);
      }
    }
    scene_.device.synchronize();
    for (live_block& b : scene_.blocks) {
      b.named_by = b.named_by == capture ? 0 : b.named_by;
    }
  }

  /// The same of all graphs; and whoever watches them is told.
  void bring_all_to_an_end() {
    while (!held_.empty()) {
      bring_to_an_end(held_.back().capture);
    }
    scene_.device.synchronize();
    scene_.device.tell_of_endings();
  }

  /// Submits to `to` a wait for what `from` was given, where they are two.
  void order(std::size_t from, std::size_t to) {
    if (from != to) {
      scene_.device.order(handle(from), handle(to));
    }
  }

  /// A stream that takes part in no capture.
  [[nodiscard]] std::size_t any_eager() {
    const std::size_t s = by_.below(stream_count);
    return scene_.streams[s].capturing() ? 0 : s;
  }

  [[nodiscard]] std::uint64_t captures() const { return captures_; }
  [[nodiscard]] std::uint64_t launches() const { return launches_; }

 private:
  static constexpr std::size_t most_captures = 3;
  static constexpr std::size_t most_held = 8;

  [[nodiscard]] simulated_stream handle(std::size_t s) const { return scene_.streams[s].handle; }
  [[nodiscard]] std::uint64_t capture_of(std::size_t s) const { return scene_.streams[s].capture; }

  void keep(std::uint64_t capture, pagesift::simulated_graph graph) {
    while (held_.size() + 2 > most_held) {
      drop(0);
    }
    held_.push_back({capture, {}, scene_.device.instantiate(graph)});
    if (by_.below(2) == 0) {
      held_.push_back({capture, graph, {}});
    } else {
      scene_.device.destroy(graph);
    }
  }

  void drop(std::size_t i) {
    const graph_holder h = held_[i];
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    if (h.graph.number != 0) {
      scene_.device.destroy(h.graph);
    } else {
      scene_.device.destroy(h.replay);
    }
  }

  choices& by_;
  scene& scene_;
  std::uint64_t captures_ = 0;
  std::uint64_t launches_ = 0;
  std::map<std::uint64_t, running_capture> running_;
  std::vector<graph_holder> held_;
  std::map<std::uint64_t, std::size_t> launched_on_;
};

}  // namespace fuzz
