// Every order in which three streams can pass a block around, up to a depth: the real pool on the
// simulated device, whose vector clocks judge each hand-out. Nothing is drawn at random.
#include <pagesift/backend/simulated.hpp>
#include <pagesift/pool/pool.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

using pagesift::mebibyte;
using pagesift::simulated_stream;

namespace {

constexpr std::size_t stream_count = 3;
constexpr std::size_t block_count = 2;  // what the device has room for

/// What can happen next. Each concerns one stream, but for the last two.
enum class kind : unsigned char {
  allocate,      // a request on the stream, a kernel that uses the block
  free,          // the stream's older block is freed on it
  free_on_next,  // the same on the next stream, which waits for it
  retire,        // the pool is told that the stream will go
  replace,       // the stream is destroyed; a new one gets its handle
  run,           // the stream's work submitted so far ends
  trim           // all idle memory back, waiting as need be
};
constexpr std::size_t kind_count = 7;

struct action {
  kind what;
  std::size_t stream;
};

std::string name_of(const action& a) {
  constexpr std::array<const char*, kind_count> names{"allocate", "free", "free_on_next", "retire",
                                                      "replace",  "run",  "trim"};
  return std::string{names[static_cast<std::size_t>(a.what)]} + "(" + std::to_string(a.stream) +
         ") ";
}

/// How a model's pool is set up.
struct model_options {
  pagesift::backing backing = pagesift::backing::plain;
  std::size_t bytes = 2 * mebibyte;  ///< of each block
  std::size_t seal_bytes = 32 * mebibyte;
};

/// One run from the start: a pool whose device has room for two blocks, so that streams must pass
/// them on; three streams that the pool has seen.
class model {
 public:
  explicit model(const model_options& options) : bytes_{options.bytes}, device_{of_two_blocks()} {
    pagesift::pool_options pool;
    pool.backing = options.backing;
    pool.seal_bytes = options.seal_bytes;
    pool_ = std::make_unique<pool_type>(pagesift::simulated_backend{device_}, pool);
    for (simulated_stream& s : streams_) {
      s = device_.create_stream();
    }
  }

  void act(const action& a) {
    const simulated_stream s = streams_[a.stream];
    switch (a.what) {
      case kind::allocate:
        return allocate(a.stream);
      case kind::free:
        return free(a.stream, a.stream);
      case kind::free_on_next:
        return free(a.stream, (a.stream + 1) % stream_count);
      case kind::retire:
        return pool_->retire(s);
      case kind::replace:
        device_.destroy_stream(s);
        streams_[a.stream] = device_.create_stream();
        return;
      case kind::run:
        return device_.run_all_of(s);
      case kind::trim:
        return pool_->trim();
    }
  }

  /// Ends the run. Returns what was wrong in it, or nothing.
  [[nodiscard]] std::string end() {
    for (std::size_t s = 0; s < stream_count; ++s) {
      while (block_of(s) != held_.size()) {
        free(s, s);
      }
    }
    pool_->trim();
    if (device_.acquired_bytes() + device_.physical_bytes() != 0) {
      complaint_ += "memory was lost ";
    }
    pool_.reset();
    for (const std::string& violation : device_.violations()) {
      complaint_ += violation;
    }
    return complaint_;
  }

 private:
  using pool_type = pagesift::basic_pool<pagesift::simulated_backend>;
  struct held {
    void* p;
    std::size_t stream;
  };

  [[nodiscard]] pagesift::simulated_options of_two_blocks() const {
    pagesift::simulated_options options;
    options.budget_bytes = block_count * bytes_;
    options.reservation_bytes = 64 * mebibyte;
    return options;
  }

  [[nodiscard]] std::size_t block_of(std::size_t stream) const {
    std::size_t i = 0;
    while (i < held_.size() && held_[i].stream != stream) {
      ++i;
    }
    return i;
  }

  /// There is room for the block always: two fit, and no more are in use.
  void allocate(std::size_t s) {
    try {
      void* const p = pool_->allocate(bytes_, streams_[s]);
      device_.hand_out(streams_[s], p, bytes_);
      device_.use(streams_[s], p, bytes_);
      held_.push_back({p, s});
    } catch (const pagesift::out_of_memory&) {
      complaint_ += "out of memory that fits ";
    }
  }

  void free(std::size_t from, std::size_t on) {
    const std::size_t i = block_of(from);
    void* const p = held_[i].p;
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    if (from != on) {
      device_.order(streams_[from], streams_[on]);
    }
    device_.hand_back(streams_[on], p, bytes_);
    pool_->deallocate(p, bytes_, streams_[on]);
  }

  std::size_t bytes_;
  pagesift::simulated_device device_;
  std::unique_ptr<pool_type> pool_;
  std::array<simulated_stream, stream_count> streams_{};
  std::vector<held> held_;
  std::string complaint_;
};

/// Runs every sequence of `depth` actions. Streams are alike, so a stream that nothing has been
/// done on is only named if it is the first such.
class enumeration {
 public:
  enumeration(const model_options& options, std::size_t depth) : options_{options}, depth_{depth} {}

  [[nodiscard]] std::uint64_t run() {
    extend(0);
    return runs_;
  }

 private:
  /// The actions are chosen one by one; each choice is replayed from the start, since a pool has
  /// no copy. Only runs of full length are judged: they contain the shorter ones.
  void extend(std::size_t streams_used) {
    if (path_.size() == depth_) {
      ++runs_;
      judge();
      return;
    }
    for (std::size_t what = 0; what < kind_count; ++what) {
      const std::size_t names =
          static_cast<kind>(what) == kind::trim ? 1 : std::min(streams_used + 1, stream_count);
      for (std::size_t s = 0; s < names; ++s) {
        const action next{static_cast<kind>(what), s};
        if (worth_trying(next)) {
          const bool names_two = next.what == kind::free_on_next;
          path_.push_back(next);
          extend(next.what == kind::trim
                     ? streams_used
                     : std::max(streams_used, names_two ? stream_count : s + 1));
          path_.pop_back();
        }
      }
    }
  }

  /// Leaves out what cannot be done after this path, and what does nothing twice in a row.
  [[nodiscard]] bool worth_trying(const action& next) const {
    std::array<std::size_t, stream_count> blocks{};
    std::size_t in_use = 0;
    bool anything = false;
    for (const action& a : path_) {
      if (a.what == kind::allocate) {
        ++blocks[a.stream];
        ++in_use;
      } else if (a.what == kind::free || a.what == kind::free_on_next) {
        --blocks[a.stream];
        --in_use;
        anything = true;
      }
    }
    switch (next.what) {
      case kind::allocate:
        return in_use < block_count;
      case kind::free:
      case kind::free_on_next:
        return blocks[next.stream] != 0;
      case kind::replace:
        return anything && blocks[next.stream] == 0 && !repeats(next);
      default:
        return anything && !repeats(next);
    }
  }

  [[nodiscard]] bool repeats(const action& next) const {
    return !path_.empty() && path_.back().what == next.what && path_.back().stream == next.stream;
  }

  void judge() {
    model m{options_};
    for (const action& a : path_) {
      m.act(a);
    }
    const std::string complaint = m.end();
    if (!complaint.empty()) {
      std::string sequence;
      for (const action& a : path_) {
        sequence += name_of(a);
      }
      FAIL(sequence << ": " << complaint);
    }
  }

  model_options options_;
  std::size_t depth_;
  std::vector<action> path_;
  std::uint64_t runs_ = 0;
};

}  // namespace

TEST_CASE("every order in which three streams pass large blocks around keeps their order") {
  const std::uint64_t runs = enumeration{{}, PAGESIFT_MODEL_DEPTH}.run();
  MESSAGE(runs << " runs of " << PAGESIFT_MODEL_DEPTH << " actions");
  CHECK(runs > 1000);
}

TEST_CASE("every order in which three streams pass blocks around that are sealed at each free") {
  model_options options;
  options.seal_bytes = 1;
  CHECK(enumeration{options, PAGESIFT_MODEL_DEPTH}.run() > 1000);
}

TEST_CASE("every order in which three streams pass mapped blocks around keeps their order") {
  model_options options;
  options.backing = pagesift::backing::virtual_memory;
  options.bytes = 4 * mebibyte;
  CHECK(enumeration{options, PAGESIFT_MODEL_DEPTH}.run() > 1000);
}
