// How a pool learns that a graph can run no more.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace pagesift {

/// Counts graphs that ended since somebody looked. Shared, since it may be told of an end after the
/// pool is gone.
using graph_deaths = std::shared_ptr<std::atomic<unsigned>>;

/// A flag that a graph raises at its end, from whatever thread, without a lock and without a call
/// of the backend. Owned by a pool and a graph at once: whoever lets go last destroys it.
class graph_watch {
 public:
  explicit graph_watch(graph_deaths deaths) noexcept : deaths_{std::move(deaths)} {}
  graph_watch(const graph_watch&) = delete;
  graph_watch& operator=(const graph_watch&) = delete;

  /// The graph's side: what it calls at its end, with the watch as `data`.
  static void raise(void* data) noexcept {
    auto& watch = *static_cast<graph_watch*>(data);
    watch.over_.store(true, std::memory_order_release);
    watch.deaths_->fetch_add(1, std::memory_order_release);
    watch.let_go();
  }

  /// The pool's side. What the graph did happened before `over` says so.
  [[nodiscard]] bool over() const noexcept { return over_.load(std::memory_order_acquire); }

  struct letting_go {
    void operator()(graph_watch* watch) const noexcept { watch->let_go(); }
  };

 private:
  void let_go() noexcept {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete this;
    }
  }

  ~graph_watch() = default;

  graph_deaths deaths_;
  std::atomic<bool> over_{false};
  std::atomic<int> owners_{2};
};

/// The pool's share of a watch.
using watch_owner = std::unique_ptr<graph_watch, graph_watch::letting_go>;

}  // namespace pagesift
