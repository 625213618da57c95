// Streams that were last seen capturing a graph.
#pragma once

#include <pagesift/backend/backend.hpp>
#include <pagesift/pool/hit_gate.hpp>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace pagesift {

/// Streams that were capturing when a request or a free named them, until a call sees them not
/// capturing, or their capture's graph is over. While there is one, a free asks the stream before
/// it takes the short way. Handles are compared, never passed to a backend; one that names another
/// stream in each thread counts together with its thread. The pool's mutex guards it.
template <typename Stream>
class known_captures {
 public:
  explicit known_captures(hit_gate& gate) noexcept : gate_{gate} {}

  /// Forgets `stream` where the calling thread has just seen that it does not capture. One that
  /// captures stays as it is until `belongs_to`: unless it is known which capture it takes part in,
  /// no graph's end would ever have it forgotten.
  void see(Stream stream, const stream_state& seen) noexcept {
    if (const auto known = find(stream, seen); !seen.capturing && known != streams_.end()) {
      streams_.erase(known);
      close_or_open();
    }
  }

  /// Keeps in mind that `stream`, which was just seen capturing, takes part in `capture`.
  /// \throws std::bad_alloc
  void belongs_to(Stream stream, const stream_state& seen, std::uint64_t capture) {
    if (const auto known = find(stream, seen); known != streams_.end()) {
      known->capture = capture;
    } else {
      streams_.push_back({stream, thread_of(seen), capture});
    }
    close_or_open();
  }

  /// `stream`, which names the same stream in every thread or the calling thread's own, was just
  /// seen not capturing.
  void left(Stream stream) noexcept {
    const auto gone = [stream](const entry& e) {
      return e.stream == stream &&
             (e.thread == std::thread::id{} || e.thread == std::this_thread::get_id());
    };
    streams_.erase(std::remove_if(streams_.begin(), streams_.end(), gone), streams_.end());
    close_or_open();
  }

  /// The graph of a capture is over, so none of its streams captures for it any more.
  void ended(std::uint64_t capture) noexcept {
    const auto gone = [capture](const entry& e) { return e.capture == capture; };
    streams_.erase(std::remove_if(streams_.begin(), streams_.end(), gone), streams_.end());
    close_or_open();
  }

 private:
  struct entry {
    Stream stream;
    std::thread::id thread;
    std::uint64_t capture;
  };

  [[nodiscard]] static std::thread::id thread_of(const stream_state& seen) noexcept {
    return seen.per_thread ? std::this_thread::get_id() : std::thread::id{};
  }

  [[nodiscard]] typename std::vector<entry>::iterator find(Stream stream,
                                                           const stream_state& seen) noexcept {
    return std::find_if(streams_.begin(), streams_.end(), [&](const entry& e) {
      return e.stream == stream && e.thread == thread_of(seen);
    });
  }

  void close_or_open() noexcept { gate_.set(hit_gate::captures, !streams_.empty()); }

  hit_gate& gate_;
  std::vector<entry> streams_;
};

}  // namespace pagesift
