// Graphs of the simulated device: nodes with their order, who holds them, who wants to know of the
// end.
#pragma once

#include <pagesift/backend/simulated_clock.hpp>
#include <pagesift/backend/simulated_uses.hpp>
#include <pagesift/backend/stream_capture.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace pagesift {

/// A node of a captured graph; a default-made one is none.
struct simulated_node {
  std::uint64_t number = 0;

  friend constexpr bool operator==(simulated_node a, simulated_node b) noexcept {
    return a.number == b.number;
  }
  friend constexpr bool operator<(simulated_node a, simulated_node b) noexcept {
    return a.number < b.number;
  }
};

/// A graph that a capture made, and something that launches one.
struct simulated_graph {
  std::uint64_t number = 0;
};
struct simulated_executable {
  std::uint64_t number = 0;
};

namespace simulation {

class graph_book;

/// What a graph does. Held by the capture, the graph, its executables and each launch that has not
/// run; when nobody does any more the graph is over.
struct graph_content {
  struct node {
    std::vector<std::uint64_t> before;
    byte_range use;  // empty: it uses no memory
  };
  struct watcher {
    graph_over over;
    void* data;
  };

  explicit graph_content(graph_book& of) noexcept : book{of} {}
  graph_content(const graph_content&) = delete;
  graph_content& operator=(const graph_content&) = delete;
  ~graph_content();

  graph_book& book;
  std::map<std::uint64_t, node> nodes;
  std::vector<watcher> watchers;
  vector_clock launched;  // what has happened when all launches so far have run
};
using graph_ptr = std::shared_ptr<graph_content>;

/// All graphs that are not over, and the watchers of those that are and were not told yet.
class graph_book {
 public:
  [[nodiscard]] graph_ptr make() {
    auto made = std::make_shared<graph_content>(*this);
    living_.insert(made.get());
    return made;
  }

  void over(graph_content& content) {
    living_.erase(&content);
    for (const graph_content::watcher& w : content.watchers) {
      to_tell_.push_back({w, content.launched});
    }
  }

  [[nodiscard]] std::uint64_t next_number() noexcept { return ++numbers_; }

  /// Appends a node behind `position`. Returns its number.
  std::uint64_t append(graph_content& content, const std::vector<std::uint64_t>& position,
                       byte_range use) {
    const std::uint64_t number = next_number();
    content.nodes.emplace(number, graph_content::node{position, use});
    return number;
  }

  /// Whether a graph other than `except` uses any byte of `range`.
  [[nodiscard]] bool names(byte_range range, const graph_content* except) const {
    return std::any_of(living_.begin(), living_.end(), [&](const graph_content* c) {
      return c != except && std::any_of(c->nodes.begin(), c->nodes.end(), [&](const auto& entry) {
               return overlap(entry.second.use, range);
             });
    });
  }

  /// Whether a node of `content` that does not come before `position` uses any byte of `range`.
  [[nodiscard]] static bool names_unordered(const graph_content& content, byte_range range,
                                            const std::vector<std::uint64_t>& position) {
    const std::set<std::uint64_t> before = up_to(content, position);
    return std::any_of(content.nodes.begin(), content.nodes.end(), [&](const auto& entry) {
      return overlap(entry.second.use, range) && before.count(entry.first) == 0;
    });
  }

  /// The nodes of `position` and all before them.
  [[nodiscard]] static std::set<std::uint64_t> up_to(const graph_content& content,
                                                     std::vector<std::uint64_t> position) {
    std::set<std::uint64_t> found;
    while (!position.empty()) {
      const std::uint64_t next = position.back();
      position.pop_back();
      if (found.insert(next).second) {
        const auto& before = content.nodes.at(next).before;
        position.insert(position.end(), before.begin(), before.end());
      }
    }
    return found;
  }

  /// The node of that number and the graph it is in; or null.
  [[nodiscard]] const graph_content::node* find(std::uint64_t number) const {
    for (const graph_content* c : living_) {
      const auto found = c->nodes.find(number);
      if (found != c->nodes.end()) {
        return &found->second;
      }
    }
    return nullptr;
  }

  /// A graph that is not over, by its address.
  [[nodiscard]] graph_content* living(const void* content) const {
    const auto found = std::find(living_.begin(), living_.end(), content);
    return found == living_.end() ? nullptr : *found;
  }

  /// Somebody who is to be told, with what has happened by then.
  struct ending {
    graph_content::watcher watcher;
    vector_clock clock;
  };
  [[nodiscard]] std::vector<ending> take_endings() { return std::exchange(to_tell_, {}); }

 private:
  [[nodiscard]] static bool overlap(byte_range a, byte_range b) noexcept {
    return a.begin < b.end && b.begin < a.end;
  }

  std::uint64_t numbers_ = 0;
  std::set<graph_content*> living_;
  std::vector<ending> to_tell_;
};

inline graph_content::~graph_content() { book.over(*this); }

}  // namespace simulation
}  // namespace pagesift
