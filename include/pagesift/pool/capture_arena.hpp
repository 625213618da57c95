// Memory that belongs to one capture and the graph that came of it.
#pragma once

#include <pagesift/back/page_run.hpp>
#include <pagesift/back/request.hpp>
#include <pagesift/backend/stream_capture.hpp>
#include <pagesift/core/reserve.hpp>
#include <pagesift/pool/graph_watch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace pagesift {

/// What can be proved to come before a place in a capture: the nodes there and, step by step, those
/// before them. The walk is bounded; what it did not come to is not proved.
template <typename Backend>
class capture_ancestry {
 public:
  using node_type = typename Backend::node_type;
  using position = capture_position<node_type>;

  /// Nodes that one walk looks at, at most. A call of the driver costs about 100 ns.
  static constexpr std::size_t max_nodes = 512;

  /// \throws std::bad_alloc, here and in `covers`
  capture_ancestry(const Backend& backend, const position& here)
      : backend_{backend}, known_{here.known} {
    add(here);
  }

  /// Whether all that came before `there` is sure to come before here too.
  [[nodiscard]] bool covers(const position& there) {
    return known_ && there.known &&
           std::all_of(there.nodes.begin(), there.nodes.begin() + there.count,
                       [this](const node_type& n) { return reaches(n); });
  }

 private:
  [[nodiscard]] bool reaches(const node_type& wanted) {
    while (found_.count(wanted) == 0) {
      if (followed_ == nodes_.size() || followed_ == max_nodes) {
        return false;
      }
      position before;
      if (backend_.nodes_before(nodes_[followed_++], before).ok()) {
        add(before);
      }
    }
    return true;
  }

  void add(const position& before) {
    std::for_each_n(before.nodes.begin(), before.count, [this](const node_type& n) {
      if (found_.insert(n).second) {
        nodes_.push_back(n);
      }
    });
  }

  const Backend& backend_;
  bool known_;
  std::set<node_type> found_;     // nodes that come before, or are here
  std::vector<node_type> nodes_;  // the same in the order in which they were found
  std::size_t followed_ = 0;      // of these, those whose own predecessors are among them
};

/// Ids of arenas stand where a block's last use names a stream: from here up to the pool's own two.
inline constexpr stream_id first_arena_id = stream_id{3} << 62U;

/// Whether a block with that last use belongs to a capture's arena, living or dead.
[[nodiscard]] constexpr bool names_arena(stream_id id) noexcept {
  return id >= first_arena_id && id < unordered_stream;
}

/// The blocks of one capture. A graph names addresses and runs when it likes, so they serve nobody
/// else before it is over; within the capture a block serves again once its free is ordered before.
///
/// Blocks given back are parked: out of every cache (`block_state::taken`), so that their runs
/// stay. The pool's mutex guards it.
template <typename Backend>
class capture_arena {
 public:
  using position = capture_position<typename Backend::node_type>;

  capture_arena(std::uint64_t of_capture, stream_id own_id, watch_owner of_graph) noexcept
      : capture{of_capture}, id{own_id}, watch{std::move(of_graph)} {}

  const std::uint64_t capture;
  const stream_id id;
  const watch_owner watch;
  int pins = 0;  ///< calls in progress that refer to it without the mutex

  /// Bytes kept for the graph, in users' hands or parked.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// Makes sure that one block more can be parked without host memory. \throws std::bad_alloc
  void expect_block() {
    reserve_amortised(reusable_, blocks_ + 1);
    ++blocks_;
  }
  void expect_block_no_more() noexcept { --blocks_; }

  /// A block that was expected came from the pool, or one that was not, to be kept only.
  void add(const block& b) noexcept { bytes_ += b.run->block_bytes; }
  /// A block is not the arena's any more.
  void forget(const block& b) noexcept { bytes_ -= b.run->block_bytes; }

  /// A block that was freed in the capture, and where.
  struct parked_block {
    block* parked;
    position freed_at;
    std::uint64_t number;  ///< of this free among all of the arena's
  };

  /// Parked blocks that have the size for the request, newest first, so many as are worth a look
  /// into their order. \throws std::bad_alloc
  [[nodiscard]] std::vector<parked_block> candidates(const request& r) const {
    std::vector<parked_block> found;
    for (auto i = reusable_.rbegin(); i != reusable_.rend() && found.size() < max_tries; ++i) {
      if (serves(*i->parked, r)) {
        found.push_back(*i);
      }
    }
    return found;
  }

  /// Takes a candidate out. Returns whether it was still there, and not freed anew meanwhile.
  [[nodiscard]] bool take(const parked_block& wanted) noexcept {
    const auto at = std::find_if(reusable_.begin(), reusable_.end(),
                                 [&](const parked_block& p) { return p.number == wanted.number; });
    if (at == reusable_.end()) {
      return false;
    }
    reusable_.erase(at);
    return true;
  }

  /// Parks a block that may serve again behind `freed_at`. Precondition: it was expected.
  void park(block& b, const position& freed_at) noexcept {
    reusable_.push_back({&b, freed_at, ++frees_});
  }

  /// Parks a block until the graph is over and the use `after` complete besides.
  void keep(block& b, last_use after) noexcept {
    b.use = after;
    b.older = kept_;
    kept_ = &b;
  }

  /// Takes out every parked block and calls `f(block&)` for it; what else has to be complete is its
  /// `use` then.
  template <typename Function>
  void release(Function&& f) noexcept {
    for (const parked_block& p : reusable_) {
      p.parked->use = {};
      f(*p.parked);
    }
    reusable_.clear();
    while (kept_ != nullptr) {
      block& b = *std::exchange(kept_, kept_->older);
      f(b);
    }
  }

 private:
  static constexpr std::size_t max_tries = 16;

  [[nodiscard]] static bool serves(const block& b, const request& r) noexcept {
    const std::size_t bytes = b.run->block_bytes;
    const bool large = has_own_run(r.waiting) && b.run->capacity == 1;
    return b.run->waiting == r.waiting ||
           (large && bytes >= r.bytes && bytes / 2 <= r.plenty.block_bytes);
  }

  std::size_t bytes_ = 0;
  std::size_t blocks_ = 0;  // that may be parked for further use
  std::vector<parked_block> reusable_;
  std::uint64_t frees_ = 0;
  block* kept_ = nullptr;  // linked by `older`
};

}  // namespace pagesift
