// What each thread remembers of the streams it named last.
#pragma once

#include <pagesift/back/block.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pagesift {

template <typename Backend>
class stream_record;
class stream_cache;

/// A number that no other pool in the process has had, so that a thread never takes what it
/// remembers of a pool that is gone for a new one's. A process may have several copies of this
/// function: each counts from elsewhere among 2^64 numbers.
[[nodiscard]] inline std::uint64_t next_pool_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;  // spreads addresses, which lie close together
  return reinterpret_cast<std::uintptr_t>(&last) * odd + ++last;
}

/// Tells threads apart, by small numbers.
[[nodiscard]] inline unsigned this_thread_number() noexcept {
  static std::atomic<unsigned> last{0};
  thread_local const unsigned mine = ++last;
  return mine;
}

/// Where the calling thread found a stream: the record and cache that were `id`'s when it looked.
/// Whether they still are the cache says. Handles are compared, never passed to a backend.
template <typename Backend>
struct remembered_stream {
  std::uint64_t pool = 0;
  typename Backend::stream_type handle{};
  stream_id id = 0;
  stream_record<Backend>* record = nullptr;
  stream_cache* cache = nullptr;
  unsigned meetings = 0;  ///< times another thread held the cache
};

/// The streams that the calling thread named last, in whichever pools.
template <typename Backend>
class last_streams {
 public:
  using entry = remembered_stream<Backend>;

  /// What is known of the stream by that handle, or null.
  [[nodiscard]] static entry* find(std::uint64_t pool,
                                   typename Backend::stream_type handle) noexcept {
    for (entry& e : mine()) {
      if (e.pool == pool && e.handle == handle) {
        return &e;
      }
    }
    return nullptr;
  }

  /// Remembers a stream in the place of what is known by its handle, or of the oldest one.
  static entry& remember(const entry& fresh) noexcept {
    if (entry* known = find(fresh.pool, fresh.handle)) {
      return *known = fresh;
    }
    std::array<entry, 4>& entries = mine();
    std::move_backward(entries.begin(), entries.end() - 1, entries.end());
    return entries.front() = fresh;
  }

 private:
  [[nodiscard]] static std::array<entry, 4>& mine() noexcept {
    static thread_local std::array<entry, 4> entries{};
    return entries;
  }
};

}  // namespace pagesift
