// Streams that were last seen capturing a graph.
#pragma once

#include <pagesift/backend/backend.hpp>
#include <pagesift/pool/hit_gate.hpp>

#include <algorithm>
#include <thread>
#include <vector>

namespace pagesift {

/// Streams that were capturing when a call named them, until a call sees them not capturing. A
/// fence would end those captures. Handles are compared, never passed to a backend; one that names
/// another stream in each thread counts together with its thread. The pool's mutex guards it.
template <typename Stream>
class known_captures {
 public:
  explicit known_captures(hit_gate& gate) noexcept : gate_{gate} {}

  [[nodiscard]] bool none() const noexcept { return streams_.empty(); }

  /// Keeps in mind what the calling thread has just seen of `stream`. \throws std::bad_alloc
  void see(Stream stream, const stream_state& seen) {
    const key named{stream, seen.per_thread ? std::this_thread::get_id() : std::thread::id{}};
    const auto known = std::find(streams_.begin(), streams_.end(), named);
    if (seen.capturing && known == streams_.end()) {
      streams_.push_back(named);
    } else if (!seen.capturing && known != streams_.end()) {
      streams_.erase(known);
    }
    gate_.set(hit_gate::captures, !streams_.empty());
  }

 private:
  struct key {
    Stream stream;
    std::thread::id thread;

    friend bool operator==(const key& a, const key& b) {
      return a.stream == b.stream && a.thread == b.thread;
    }
  };

  hit_gate& gate_;
  std::vector<key> streams_;
};

}  // namespace pagesift
