// Streams that were last seen capturing a graph.
#pragma once

#include <pagesift/backend/backend.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace pagesift {

/// Streams that were capturing when a call named them, until a call sees them not capturing. A
/// fence would end those captures. Handles are compared, never passed to a backend; one that names
/// another stream in each thread counts together with its thread. The pool's mutex guards it, but
/// for `none`.
template <typename Stream>
class known_captures {
 public:
  [[nodiscard]] bool none() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

  /// Keeps in mind what the calling thread has just seen of `stream`. \throws std::bad_alloc
  void see(Stream stream, const stream_state& seen) {
    const key named{stream, seen.per_thread ? std::this_thread::get_id() : std::thread::id{}};
    const auto known = std::find(streams_.begin(), streams_.end(), named);
    if (seen.capturing && known == streams_.end()) {
      streams_.push_back(named);
    } else if (!seen.capturing && known != streams_.end()) {
      streams_.erase(known);
    }
    count_.store(streams_.size(), std::memory_order_relaxed);
  }

 private:
  struct key {
    Stream stream;
    std::thread::id thread;

    friend bool operator==(const key& a, const key& b) {
      return a.stream == b.stream && a.thread == b.thread;
    }
  };

  std::vector<key> streams_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace pagesift
