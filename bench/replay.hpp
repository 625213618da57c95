// Does to an allocator what a trace says.
#pragma once

#include "machine.hpp"
#include "trace.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace bench {

/// The blocks a replay has in use; gives them back when a shortage ends the replay half-way.
template <typename Allocator>
class replay {
 public:
  /// \param streams one for each that the trace names
  replay(Allocator& allocator, const trace& recorded, std::vector<stream> streams)
      : allocator_{allocator},
        trace_{recorded},
        streams_{std::move(streams)},
        blocks_(recorded.slots) {}
  replay(const replay&) = delete;
  replay& operator=(const replay&) = delete;
  ~replay() {
    for (const block& left : blocks_) {
      if (left.p != nullptr) {
        allocator_.deallocate(left.p, left.bytes, streams_.front());
      }
    }
  }

  void run() {
    for (const operation& next : trace_.operations) {
      block& b = blocks_[next.slot];
      if (next.allocates) {
        b = {allocator_.allocate(next.bytes, streams_[next.stream]), next.bytes};
      } else {
        allocator_.deallocate(b.p, b.bytes, streams_[next.stream]);
        b.p = nullptr;
      }
    }
  }

 private:
  struct block {
    void* p = nullptr;
    std::size_t bytes = 0;
  };

  Allocator& allocator_;
  const trace& trace_;
  std::vector<stream> streams_;
  std::vector<block> blocks_;
};

}  // namespace bench
