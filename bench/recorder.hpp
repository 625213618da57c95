// An allocator that writes down what is asked of it, as trace_file.hpp reads it.
#pragma once

#include "machine.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <ostream>
#include <unordered_map>

namespace bench {

/// Serves Thrust on the default stream from `Allocator`, and writes a line for each request and
/// each free into `lines`, which outlives it. May be called from several threads.
template <typename Allocator>
class recorder {
 public:
  recorder(Allocator& allocator, std::ostream& lines) : allocator_{allocator}, lines_{lines} {
    lines_ << "op,id,bytes,stream\n";
  }

  [[nodiscard]] void* allocate(std::size_t bytes, stream s) {
    void* const p = allocator_.allocate(bytes, s);
    const std::lock_guard lock{mutex_};
    ids_[p] = ++newest_id_;
    write("allocate", newest_id_, bytes);
    return p;
  }

  /// The line comes before the free, so that no other thread gets the same block before it.
  void deallocate(void* p, std::size_t bytes, stream s) {
    {
      const std::lock_guard lock{mutex_};
      write("free", ids_[p], bytes);
    }
    allocator_.deallocate(p, bytes, s);
  }

 private:
  void write(const char* op, std::uint64_t id, std::size_t bytes) {
    lines_ << op << ',' << id << ',' << bytes << ",0\n";
  }

  Allocator& allocator_;
  std::ostream& lines_;
  std::mutex mutex_;
  std::unordered_map<void*, std::uint64_t> ids_;
  std::uint64_t newest_id_ = 0;
};

}  // namespace bench
