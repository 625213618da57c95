// The arenas of all captures that a pool has met and whose graphs may still run.
#pragma once

#include <pagesift/core/reserve.hpp>
#include <pagesift/pool/capture_arena.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace pagesift {

/// The pool's mutex guards it, but for `deaths`. References to arenas stay valid while the arena is
/// pinned or the mutex held.
template <typename Backend>
class capture_arenas {
 public:
  using arena = capture_arena<Backend>;

  /// Graphs that ended and were not looked for yet. Shared with them.
  [[nodiscard]] const graph_deaths& deaths() const noexcept { return deaths_; }

  /// The arena of a capture, or null.
  [[nodiscard]] arena* of_capture(std::uint64_t capture) const noexcept {
    return find([capture](const arena& a) { return a.capture == capture; });
  }

  /// The arena with that id, or null: it is dead.
  [[nodiscard]] arena* with_id(stream_id id) const noexcept {
    return find([id](const arena& a) { return a.id == id; });
  }

  /// An arena for a capture that has none. \throws std::bad_alloc
  [[nodiscard]] arena& make(std::uint64_t capture, watch_owner watch) {
    reserve_amortised(arenas_, arenas_.size() + 1);
    arenas_.push_back(std::make_unique<arena>(capture, first_arena_id + made_, std::move(watch)));
    ++made_;
    return *arenas_.back();
  }

  /// Takes out one arena whose graph is over and that nobody has pinned; or null.
  [[nodiscard]] std::unique_ptr<arena> take_dead() noexcept {
    const auto dead = std::find_if(arenas_.begin(), arenas_.end(),
                                   [](const auto& a) { return a->pins == 0 && a->watch->over(); });
    if (dead == arenas_.end()) {
      return nullptr;
    }
    std::unique_ptr<arena> taken = std::move(*dead);
    arenas_.erase(dead);
    return taken;
  }

  /// Whether `take_dead` would take one.
  [[nodiscard]] bool can_take_dead() const noexcept {
    return find([](const arena& a) { return a.pins == 0 && a.watch->over(); }) != nullptr;
  }

  /// Whether there is one whose graph is over.
  [[nodiscard]] bool has_dead() const noexcept {
    return find([](const arena& a) { return a.watch->over(); }) != nullptr;
  }

  /// Keeps a block for good: a graph names it, and nobody will say when that is over.
  void strand(block& b) noexcept {
    if (arena* const home = with_id(b.use.stream)) {
      home->forget(b);
    }
    stranded_bytes_ += b.run->block_bytes;
  }

  /// Bytes kept for graphs, in users' hands or parked.
  [[nodiscard]] std::size_t bytes() const noexcept {
    std::size_t sum = stranded_bytes_;
    for (const auto& a : arenas_) {
      sum += a->bytes();
    }
    return sum;
  }

 private:
  template <typename Predicate>
  [[nodiscard]] arena* find(Predicate&& matches) const noexcept {
    for (const auto& a : arenas_) {
      if (matches(*a)) {
        return a.get();
      }
    }
    return nullptr;
  }

  graph_deaths deaths_ = std::make_shared<std::atomic<unsigned>>(0U);
  std::uint64_t made_ = 0;
  std::size_t stranded_bytes_ = 0;
  std::vector<std::unique_ptr<arena>> arenas_;
};

/// Of a pool whose backend's streams capture nothing.
struct no_capture_arenas {
  [[nodiscard]] static constexpr std::size_t bytes() noexcept { return 0; }
};

}  // namespace pagesift
