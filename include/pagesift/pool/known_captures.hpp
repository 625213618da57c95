// Streams that were last seen capturing a graph.
#pragma once

#include <algorithm>
#include <vector>

namespace pagesift {

/// Handles of streams that were capturing when a call named them, until a call sees them not
/// capturing. A fence would end those captures. The handles are compared, never passed to a
/// backend. Not thread-safe: the pool's lock guards it.
template <typename Stream>
class known_captures {
 public:
  [[nodiscard]] bool none() const noexcept { return streams_.empty(); }

  /// \throws std::bad_alloc
  void note(Stream stream) {
    if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) {
      streams_.push_back(stream);
    }
  }

  void forget(Stream stream) noexcept {
    if (!streams_.empty()) {
      streams_.erase(std::remove(streams_.begin(), streams_.end(), stream), streams_.end());
    }
  }

 private:
  std::vector<Stream> streams_;
};

}  // namespace pagesift
