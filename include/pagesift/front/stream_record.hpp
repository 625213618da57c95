// What the pool knows of one stream: its timeline and its caches.
#pragma once

#include <pagesift/exchange/stream_timeline.hpp>
#include <pagesift/front/cache_registry.hpp>
#include <pagesift/front/stream_cache.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pagesift {

/// Records are used again for other streams and never destroyed while the pool lives, so that a
/// thread may keep pointing at one; the caches say whose they are.
///
/// The pool's mutex guards it, but for what is atomic. References to its caches stay valid.
template <typename Backend>
class stream_record {
 public:
  /// Caches of one stream, at most. More would only help more threads than this at once.
  static constexpr std::size_t max_caches = 16;

  stream_record(stream_id stream, epoch first, stream_cache& cache) noexcept
      : id{stream}, timeline{first} {
    cache.stream = stream;
    caches_[0].store(&cache, std::memory_order_relaxed);
  }

  stream_id id;
  stream_timeline<Backend> timeline;
  std::atomic<std::uint64_t> asks_answered{0};  ///< of the pool's asks, those its seals answered
  int pins = 0;  ///< calls in progress that refer to it without the mutex, and blocks elsewhere
  epoch newest_away = 0;  ///< of the frees whose blocks wait elsewhere, for other streams or graphs

  /// The cache that all threads use until they meet there.
  [[nodiscard]] stream_cache& first_cache() const noexcept { return *cache(0); }

  /// The cache in which a block of this stream waits.
  [[nodiscard]] stream_cache& cache_of(const block& b) const noexcept { return *cache(b.cache); }

  /// The cache for the thread with that number, made if need be, so that it meets fewer others.
  /// \throws std::bad_alloc
  [[nodiscard]] stream_cache& cache_for(unsigned thread, cache_registry& all) {
    const std::size_t number = thread % max_caches;
    if (stream_cache* present = cache(number)) {
      return *present;
    }
    stream_cache& made = all.make(true);
    made.stream = id;
    made.number = static_cast<unsigned char>(number);
    caches_[number].store(&made, std::memory_order_release);
    return made;
  }

  /// Calls `f(cache)` for each of its caches, the first one first; a cache that is made meanwhile
  /// may be left out.
  template <typename Function>
  void for_each_cache(Function&& f) const {
    for (std::size_t number = 0; number < max_caches; ++number) {
      if (stream_cache* present = cache(number)) {
        f(*present);
      }
    }
  }

  /// The first that is not null of `f(cache)` over its caches.
  template <typename Function>
  [[nodiscard]] block* first_of(Function&& f) const {
    block* found = nullptr;
    for_each_cache([&](stream_cache& c) { found = found != nullptr ? found : f(c); });
    return found;
  }

  /// Starts anew for another stream. Precondition: it was retired or is new, and no cache is locked
  /// by the caller. Threads that remember the former stream look at its caches now and then.
  void restart(stream_id stream, epoch first) noexcept {
    id = stream;
    timeline.restart(first);
    asks_answered.store(0, std::memory_order_relaxed);
    newest_away = 0;
    for_each_cache([stream](stream_cache& c) {
      const cache_guard guard{c.lock};
      c.restart(stream);
    });
  }

  /// Belongs to no stream any more. Precondition: every cache is locked, no block waits here.
  void retire() noexcept {
    id = unordered_stream;
    for_each_cache([](stream_cache& c) { c.stream = unordered_stream; });
  }

 private:
  [[nodiscard]] stream_cache* cache(std::size_t number) const noexcept {
    return caches_[number].load(std::memory_order_acquire);
  }

  std::array<std::atomic<stream_cache*>, max_caches> caches_{};
};

}  // namespace pagesift
