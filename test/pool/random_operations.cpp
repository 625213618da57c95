// Random operations on a simulated device whose judge knows all orders, against a simple model.
#include "world.hpp"

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#ifndef PAGESIFT_RANDOM_OPERATIONS
#define PAGESIFT_RANDOM_OPERATIONS 1000000
#endif

namespace {

constexpr std::size_t stream_count = 8;
constexpr std::size_t budget = 256 * mebibyte;

struct live_block {
  void* p;
  std::size_t bytes;
  std::size_t owner;  // the stream whose order it is in, by place
};

/// What users of a pool may do, chosen at random, with a list of what they hold.
class random_users {
 public:
  random_users(std::uint64_t seed, const pool_options& options, const simulated_options& device)
      : random_{seed}, world_{options, device} {
    for (simulated_stream& s : streams_) {
      s = world_.device.create_stream();
    }
  }

  void run(int operations) {
    for (int i = 0; i < operations && sound(i); ++i) {
      one_operation(below(1000));
      if (i % 1000 == 0) {
        compare_with_model();
      }
    }
    return_everything();
  }

 private:
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }
  std::size_t any_stream() { return below(stream_count); }

  /// Stops at the first violation and says where it was.
  bool sound(int operation) {
    const bool clean = world_.device.violations().empty();
    CHECK_MESSAGE(clean, "violation before operation ", operation);
    return clean;
  }

  void one_operation(std::size_t dice) {
    if (dice < 440) {
      allocate();
    } else if (dice < 850) {
      free_one();
    } else if (dice < 890) {
      use_elsewhere();
    } else if (dice < 940) {
      world_.device.run_some();
    } else if (dice < 943) {
      world_.device.synchronize(streams_[any_stream()]);
    } else if (dice < 970) {
      close_or_open_a_gate();
    } else if (dice < 989) {
      replace_stream();
    } else if (dice < 990) {
      free_without_stream();
    } else {
      rare_operation(below(40));
    }
  }

  void rare_operation(std::size_t dice) {
    if (dice < 6) {
      guarded([&] { world_.pool->trim(below(budget / 2)); });
    } else if (dice < 8) {
      guarded([&] { world_.pool->trim(); });
    } else if (dice < 12) {
      guarded([&] { world_.pool->end_batch(); });
    } else if (dice < 20) {
      guarded([&] { world_.pool->retire(streams_[any_stream()]); });
    } else if (dice < 25) {
      world_.device.set_budget(budget / 8 + below(budget));
      live_bound_ = budget >> below(7);
    } else {
      with_a_fault();
    }
  }

  /// Sizes of all magnitudes up to 64 MiB, small ones more often.
  std::size_t any_size() {
    const std::size_t magnitude = below(6) == 0 ? 16 + below(11) : 4 + below(16);
    return 1 + below(std::size_t{1} << magnitude);
  }

  std::size_t any_alignment() {
    return below(8) == 0 ? std::size_t{1} << below(22) : pagesift::default_alignment;
  }

  void allocate() {
    if (blocks_.size() > 400 || live_bytes_ > live_bound_) {
      return free_one();
    }
    const std::size_t owner = any_stream();
    const std::size_t bytes = any_size();
    const std::size_t alignment = any_alignment();
    const bool without_stream = below(200) == 0;
    guarded([&] {
      void* const p = without_stream ? world_.pool->allocate_sync(bytes, alignment)
                                     : world_.pool->allocate(bytes, alignment, streams_[owner]);
      if (without_stream) {
        world_.device.hand_out(p, bytes);
      } else {
        world_.device.hand_out(streams_[owner], p, bytes);
      }
      if (!aligned(p, alignment)) {
        FAIL_CHECK("not aligned");
      }
      if (below(4) != 0) {
        world_.device.use(streams_[owner], p, bytes);
      }
      blocks_.push_back({p, bytes, owner});
      live_bytes_ += bytes;
    });
  }

  live_block take_any() {
    std::swap(blocks_[below(blocks_.size())], blocks_.back());
    const live_block taken = blocks_.back();
    blocks_.pop_back();
    live_bytes_ -= taken.bytes;
    return taken;
  }

  /// Frees on the stream the block belongs to, or on another that was told to wait.
  void free_one() {
    if (blocks_.empty()) {
      return;
    }
    const live_block b = take_any();
    std::size_t where = b.owner;
    if (below(4) == 0) {
      where = any_stream();
      world_.device.order(streams_[b.owner], streams_[where]);
    }
    world_.free(b.p, b.bytes, streams_[where]);
  }

  void free_without_stream() {
    if (!blocks_.empty()) {
      const live_block b = take_any();
      world_.device.hand_back(b.p, b.bytes);
      world_.pool->deallocate_sync(b.p, b.bytes);
    }
  }

  /// A second stream uses a block, and the owner waits for that.
  void use_elsewhere() {
    if (!blocks_.empty()) {
      const live_block& b = blocks_[below(blocks_.size())];
      const simulated_stream other = streams_[any_stream()];
      world_.device.order(streams_[b.owner], other);
      world_.device.use(other, b.p, b.bytes);
      world_.device.order(other, streams_[b.owner]);
    }
  }

  void close_or_open_a_gate() {
    if (gates_.size() < 3) {
      gates_.push_back(world_.device.gate(streams_[any_stream()]));
    } else {
      world_.device.open(gates_.front());
      gates_.erase(gates_.begin());
    }
  }

  /// Blocks of a stream that goes are in the order of another one from then on.
  void replace_stream() {
    const std::size_t gone = any_stream();
    const std::size_t heir = (gone + 1) % stream_count;
    world_.device.order(streams_[gone], streams_[heir]);
    for (live_block& b : blocks_) {
      b.owner = b.owner == gone ? heir : b.owner;
    }
    if (below(2) == 0) {
      guarded([&] { world_.pool->retire(streams_[gone]); });
    }
    world_.device.destroy_stream(streams_[gone]);
    streams_[gone] = world_.device.create_stream();
  }

  void with_a_fault() {
    const bool shortage = below(2) == 0;
    world_.device.fail({{},
                        2 + below(6),
                        below(4) == 0,
                        shortage ? pagesift::outcome::shortage : pagesift::outcome::failed,
                        shortage ? 2 : 700});
    faulty_ = true;
    for (int i = 0; i < 4; ++i) {
      one_operation(below(990));
    }
    world_.device.clear_faults();
    faulty_ = false;
  }

  /// Runs `operation`, which may end in a shortage, and in a failure where one was planted.
  template <typename Operation>
  void guarded(Operation operation) {
    try {
      operation();
    } catch (const pagesift::out_of_memory&) {
      ++shortages_;
    } catch (const pagesift::backend_error& e) {
      CHECK_MESSAGE(faulty_, e.what());
    }
  }

  void compare_with_model() {
    const pool_stats stats = world_.pool->stats();
    check_invariants(stats);
    CHECK(blocks_in_use(stats) == blocks_.size());
    CHECK(stats.in_use >= live_bytes_);
    CHECK(stats.held == world_.held_bytes());
    CHECK(stats.live_events == world_.device.live_events());
    CHECK(stats.rejected_frees == 0);
    CHECK(stats.peak_held <= world_.pool->options().limit_bytes);
  }

  void return_everything() {
    while (!blocks_.empty()) {
      free_one();
    }
    compare_with_model();
    CHECK(shortages_ > 0);
    world_.device.open_all_gates();
    world_.pool->trim();
    CHECK(world_.pool->stats().held == 0);
    CHECK(world_.held_bytes() == 0);
  }

  std::mt19937_64 random_;
  world world_;
  std::array<simulated_stream, stream_count> streams_{};
  std::vector<live_block> blocks_;
  std::size_t live_bytes_ = 0;
  std::size_t live_bound_ = budget;  // changes, so that ranges become free as a whole
  std::vector<pagesift::simulated_gate> gates_;
  bool faulty_ = false;
  int shortages_ = 0;
};

simulated_options busy_device(std::uint64_t seed) {
  simulated_options options = with_budget(budget);
  options.seed = seed;
  options.on_blocked_wait = pagesift::blocked_wait::opens_gates;
  return options;
}

}  // namespace

TEST_CASE("random operations on eight streams never hand out memory too early") {
  random_users{1, {}, busy_device(1)}.run(PAGESIFT_RANDOM_OPERATIONS);
}

TEST_CASE("random operations on memory that is mapped and moved") {
  random_users{3, on_mapped_memory(), busy_device(3)}.run(PAGESIFT_RANDOM_OPERATIONS);
}

TEST_CASE("random operations in a pool with a limit, sealed early, on memory barely aligned") {
  pool_options options = with_limit(budget / 2);
  options.seal_bytes = 256 * kibibyte;
  simulated_options device = busy_device(2);
  device.page_aligned = false;
  random_users{2, options, device}.run(PAGESIFT_RANDOM_OPERATIONS / 5);
}
