// Random captures, replays and eager work on a device whose judge knows all graphs.
#include "capture_scene.hpp"

#include <array>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#ifndef PAGESIFT_CAPTURE_OPERATIONS
#define PAGESIFT_CAPTURE_OPERATIONS 100000
#endif

namespace {

constexpr std::size_t eager_count = 3;
constexpr std::size_t branch_count = 3;

struct live_block {
  void* p;
  std::size_t bytes;
  simulated_stream owner;
};

simulated_options busy_device(std::uint64_t seed) {
  simulated_options options = relaxed(192 * mebibyte);
  options.seed = seed;
  options.on_blocked_wait = pagesift::blocked_wait::opens_gates;
  options.tells_late = seed % 2 == 0;
  return options;
}

/// One capture at a time, on up to three streams that fork and join, beside eager streams and
/// launches of the graphs captured before.
class random_graphs {
 public:
  random_graphs(std::uint64_t seed, const pool_options& options)
      : random_{seed}, world_{options, busy_device(seed)} {
    for (simulated_stream& s : eager_) {
      s = world_.device.create_stream();
    }
    for (simulated_stream& s : branches_) {
      s = world_.device.create_stream();
    }
  }

  void run(int operations) {
    for (int i = 0; i < operations && world_.device.violations().empty(); ++i) {
      one_operation(below(1000));
      if (i % 1000 == 0) {
        check();
      }
    }
    end();
  }

 private:
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }
  std::size_t any_size() { return 1 + below(std::size_t{1} << (8 + below(17))); }
  simulated_stream any_eager() { return eager_[below(eager_count)]; }

  void one_operation(std::size_t dice) {
    if (dice < 350) {
      allocate();
    } else if (dice < 700) {
      free_one();
    } else if (dice < 800) {
      fork_or_join();
    } else if (dice < 850) {
      begin_or_end();
    } else if (dice < 920) {
      launch();
    } else if (dice < 950) {
      drop_a_graph();
    } else if (dice < 980) {
      world_.device.run_some();
      world_.device.tell_of_endings();
    } else if (dice < 990) {
      guarded([&] { world_.pool->trim(below(64 * mebibyte)); });
    } else if (dice < 992) {
      guarded([&] { world_.pool->end_batch(); });
    } else {
      with_a_fault();
    }
  }

  template <typename Operation>
  void guarded(Operation operation) {
    try {
      operation();
    } catch (const pagesift::out_of_memory&) {
    } catch (const pagesift::backend_error& e) {
      CHECK_MESSAGE(faulty_, e.what());
    }
  }

  void with_a_fault() {
    world_.device.fail({{}, 1 + below(12), false, pagesift::outcome::failed, 700});
    faulty_ = true;
    for (int i = 0; i < 4; ++i) {  // a free into a capture that cannot be looked at is for good
      one_operation(below(forked_ != 0 ? 350 : 700));
    }
    world_.device.clear_faults();
    faulty_ = false;
  }

  void allocate() {
    const bool captured = forked_ != 0 && below(2) == 0;
    std::vector<live_block>& blocks = captured ? captured_blocks_ : eager_blocks_;
    if (blocks.size() > 60) {
      return;
    }
    const simulated_stream s = captured ? branches_[below(forked_)] : any_eager();
    const std::size_t bytes = any_size();
    guarded([&] { blocks.push_back({world_.allocate(bytes, s), bytes, s}); });
  }

  live_block take_any(std::vector<live_block>& blocks) {
    std::swap(blocks[below(blocks.size())], blocks.back());
    const live_block taken = blocks.back();
    blocks.pop_back();
    return taken;
  }

  void free_one() {
    if (below(2) == 0 && !eager_blocks_.empty()) {
      const live_block b = take_any(eager_blocks_);
      const bool into_capture = forked_ != 0 && below(8) == 0;
      world_.free(b.p, b.bytes, into_capture ? branches_[below(forked_)] : b.owner);
    } else if (!captured_blocks_.empty()) {
      const live_block b = take_any(captured_blocks_);
      if (forked_ != 0 || below(2) == 0) {
        world_.free(b.p, b.bytes, forked_ != 0 ? b.owner : any_eager());
      } else {
        world_.device.synchronize();
        world_.device.hand_back(b.p, b.bytes);
        world_.pool->deallocate_sync(b.p, b.bytes);
      }
    }
  }

  void fork_or_join() {
    if (forked_ == 0) {
      return;
    }
    if (forked_ < branch_count && below(3) == 0) {
      world_.device.order(branches_[0], branches_[forked_++]);
    } else {
      const std::size_t from = below(forked_);
      const std::size_t to = below(forked_);
      if (from != to) {
        world_.device.order(branches_[from], branches_[to]);
        for (live_block& b : captured_blocks_) {  // some are freed on the other stream
          b.owner = b.owner == branches_[from] && below(2) == 0 ? branches_[to] : b.owner;
        }
      }
    }
  }

  void begin_or_end() {
    if (forked_ == 0 && graphs_.size() < 6 && captured_blocks_.empty()) {
      world_.device.begin_capture(branches_[0], simulated_capture_mode::global);
      forked_ = 1;
    } else if (forked_ != 0) {
      const pagesift::simulated_graph graph = world_.device.capture_graph(branches_[0]);
      REQUIRE(graph.number != 0);
      graphs_.push_back(world_.device.instantiate(graph));
      world_.device.destroy(graph);
      forked_ = 0;
    }
  }

  void launch() {
    if (!graphs_.empty()) {
      world_.device.launch(graphs_[below(graphs_.size())], any_eager());
      ++launches_;
    }
  }

  void drop_a_graph() {
    if (!graphs_.empty()) {
      world_.device.destroy(graphs_.front());
      graphs_.erase(graphs_.begin());
    }
  }

  void check() {
    const pool_stats stats = world_.pool->stats();
    check_invariants(stats);
    CHECK(stats.captured <= stats.held);
    CHECK(stats.rejected_frees == 0);
    most_captured_ = std::max(most_captured_, stats.captured);
  }

  void end() {
    if (forked_ != 0) {
      begin_or_end();
    }
    while (!graphs_.empty()) {
      drop_a_graph();
    }
    while (!captured_blocks_.empty() || !eager_blocks_.empty()) {
      free_one();
    }
    world_.device.synchronize();
    world_.device.tell_of_endings();
    world_.pool->trim();
    CHECK(world_.pool->stats().captured == 0);
    CHECK(world_.pool->stats().held == 0);
    CHECK(most_captured_ > 0);
    CHECK(launches_ > 0);
  }

  std::mt19937_64 random_;
  world world_;
  std::array<simulated_stream, eager_count> eager_{};
  std::array<simulated_stream, branch_count> branches_{};
  std::size_t forked_ = 0;  // streams that take part in the capture
  std::vector<live_block> eager_blocks_;
  std::vector<live_block> captured_blocks_;
  std::vector<pagesift::simulated_executable> graphs_;
  std::size_t most_captured_ = 0;
  int launches_ = 0;
  bool faulty_ = false;
};

}  // namespace

TEST_CASE("random captures, forks, replays and eager work never share a byte in time") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    random_graphs{seed, seed % 3 == 0 ? on_plain_memory() : on_mapped_memory()}.run(
        PAGESIFT_CAPTURE_OPERATIONS / 4);
  }
}
