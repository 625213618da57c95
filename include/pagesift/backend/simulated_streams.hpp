// Streams of the simulated device: handles, ids, and what each stream knows to have happened.
#pragma once

#include <pagesift/backend/backend.hpp>
#include <pagesift/backend/simulated_clock.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <vector>

namespace pagesift {

/// A stream handle of the simulated device. The handle of a destroyed stream is soon given to a
/// new one, as CUDA does. A default-made one names the legacy default stream.
struct simulated_stream {
  std::uint64_t handle = 0;

  friend constexpr bool operator==(simulated_stream a, simulated_stream b) noexcept {
    return a.handle == b.handle;
  }
  friend constexpr bool operator!=(simulated_stream a, simulated_stream b) noexcept {
    return !(a == b);
  }
};

/// One handle value that names another stream in each thread.
inline constexpr simulated_stream simulated_per_thread_stream{2};

namespace simulation {

struct stream;

/// A point in the run of things that somebody may wait for: a recorded event, or a gate.
struct moment {
  vector_clock clock;        // what has happened when it is reached
  stream* source = nullptr;  // the stream whose work reaches it; nullptr: the host does, a gate
  bool reached = false;
  bool captured = false;  // recorded into a capture, so it is never reached
};
using moment_ptr = std::shared_ptr<moment>;

/// A piece of submitted work: it may run once `await` is reached, and then `reach` is.
struct step {
  moment_ptr await;
  moment_ptr reach;
  std::shared_ptr<void> keeps = nullptr;  // until it has run
};

struct stream {
  stream_id id;
  lane_index lane;
  vector_clock clock;     // what work submitted now comes after
  std::list<step> queue;  // submitted, not yet run
};

/// All streams, and what the host knows. All host threads share one clock, as if they told each
/// other everything at once; the pool's lock does nearly that.
class stream_set {
 public:
  stream_set() { handles_.emplace(simulated_stream{}.handle, &make_stream()); }

  [[nodiscard]] simulated_stream create() {
    reclaim_one();
    reclaim_one();
    std::uint64_t handle = 0;
    if (free_handles_.empty()) {
      handle = next_handle_++;
    } else {
      handle = free_handles_.back();
      free_handles_.pop_back();
    }
    handles_.emplace(handle, &make_stream());
    return {handle};
  }

  /// The handle is dead at once; work that was submitted still runs.
  bool destroy(simulated_stream s) {
    const auto found = handles_.find(s.handle);
    if (found == handles_.end() || s.handle < first_handle) {
      return false;
    }
    destroyed_.push_back(found->second);
    free_handles_.push_back(s.handle);
    handles_.erase(found);
    return true;
  }

  /// The stream that `s` names in this thread; nullptr if it was destroyed or never existed.
  [[nodiscard]] stream* find(simulated_stream s) {
    if (s == simulated_per_thread_stream) {
      stream*& mine = per_thread_[this_thread()];
      return mine != nullptr ? mine : mine = &make_stream();
    }
    const auto found = handles_.find(s.handle);
    return found != handles_.end() ? found->second : nullptr;
  }

  /// Something new is submitted to `s`, after all the host knows of.
  tick_count tick(stream& s) {
    s.clock.join(host_);
    s.clock.advance(s.lane, ++lane_ticks_[s.lane]);
    return lane_ticks_[s.lane];
  }

  [[nodiscard]] const vector_clock& host() const noexcept { return host_; }

  /// The host has seen `clock` complete.
  void host_sees(const vector_clock& clock) { host_.join(clock); }

  /// The host has seen all work of all streams complete.
  void host_sees_all() {
    for (lane_index lane = 0; lane < lane_ticks_.size(); ++lane) {
      host_.advance(lane, lane_ticks_[lane]);
    }
  }

 private:
  static constexpr std::uint64_t first_handle = 0x1000;

  [[nodiscard]] static std::uint64_t this_thread() {
    static std::atomic<std::uint64_t> threads{0};
    thread_local const std::uint64_t number = ++threads;
    return number;
  }

  [[nodiscard]] stream& make_stream() {
    lane_index lane = lane_ticks_.size();
    if (free_lanes_.empty()) {
      lane_ticks_.push_back(0);
    } else {
      lane = free_lanes_.back();
      free_lanes_.pop_back();
    }
    const stream_id id = next_id_++;
    return streams_.emplace(id, stream{id, lane, {}, {}}).first->second;
  }

  /// Looks at one destroyed stream. If its work is done and the host knows, nobody will ask about
  /// its lane again, and another stream may count on there.
  void reclaim_one() {
    if (destroyed_.empty()) {
      return;
    }
    stream* const oldest = destroyed_.front();
    destroyed_.pop_front();
    if (oldest->queue.empty() && host_.at(oldest->lane) >= lane_ticks_[oldest->lane]) {
      free_lanes_.push_back(oldest->lane);
      streams_.erase(oldest->id);
    } else {
      destroyed_.push_back(oldest);
    }
  }

  vector_clock host_;
  std::map<stream_id, stream> streams_;
  stream_id next_id_ = 0;
  std::map<std::uint64_t, stream*> handles_;
  std::map<std::uint64_t, stream*> per_thread_;
  std::uint64_t next_handle_ = first_handle;
  std::vector<std::uint64_t> free_handles_;
  std::deque<stream*> destroyed_;
  std::vector<tick_count> lane_ticks_;
  std::vector<lane_index> free_lanes_;
};

}  // namespace simulation
}  // namespace pagesift
