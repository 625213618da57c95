// Handles of dead streams that name new ones: what a thread remembers of a handle may be wrong.
#include "world.hpp"

#include <array>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

namespace {

const std::array<pool_options, 4>& all_options() {
  static const std::array<pool_options, 4> all{
      with(pagesift::checks::standard, 32 * mebibyte), with(pagesift::checks::standard, 1),
      with(pagesift::checks::trusted, 32 * mebibyte), with(pagesift::checks::trusted, 1)};
  return all;
}

/// Destroys `s` and makes the stream that has its handle; the new one waits for the old one.
simulated_stream heir_of(world& w, simulated_stream s, simulated_stream through) {
  w.device.order(s, through);
  w.device.destroy_stream(s);
  const simulated_stream young = w.device.create_stream();
  REQUIRE(young == s);
  w.device.order(through, young);
  return young;
}

void nothing_is_lost(world& w) {
  check_invariants(w.pool->stats());
  CHECK(w.pool->stats().in_use == 0);
  w.check_no_violations();
  w.device.open_all_gates();
  w.pool->trim();
  CHECK(w.pool->stats().held == 0);
  CHECK(w.held_bytes() == 0);
}

}  // namespace

TEST_CASE("a dead stream's block freed by its handle's heir waits for the heir") {
  for (const pool_options& options : all_options()) {
    for (const bool retired : {false, true}) {
      world w{options};
      const simulated_stream through = w.device.create_stream();
      w.turn(256, through);
      const simulated_stream old = w.device.create_stream();
      w.turn(256, old);
      void* const p = w.allocate(mebibyte, old);
      if (retired) {
        w.pool->retire(old);
      }
      const simulated_stream young = heir_of(w, old, through);
      const auto gate = w.device.gate(young);
      w.device.use(young, p, mebibyte);
      w.free(p, mebibyte, young);    // this thread remembers the handle as the dead stream's
      for (int i = 0; i < 4; ++i) {  // the judge sees it if too early
        w.turn(mebibyte, through);
        w.turn(mebibyte, young);
        w.device.run_all();
      }
      w.device.open(gate);
      nothing_is_lost(w);
    }
  }
}

TEST_CASE("another stream's block freed by a handle whose stream died is the heir's at once") {
  for (const pool_options& options : all_options()) {
    world w{options};
    const simulated_stream through = w.device.create_stream();
    const simulated_stream old = w.device.create_stream();
    w.turn(256, old);
    void* const p = w.allocate(mebibyte, through);
    w.turn(256, old);  // with an event, for that miss: no free needs to ask any more
    const simulated_stream young = heir_of(w, old, through);
    w.free(p, mebibyte, young);  // this thread remembers the handle as the dead stream's
    CHECK(w.turn(mebibyte, young) == p);
    nothing_is_lost(w);
  }
}

TEST_CASE("a block goes from dead stream to heir for ever, and what the pool holds stays bounded") {
  for (const pool_options& options : all_options()) {
    world w{options};
    const simulated_stream through = w.device.create_stream();
    w.turn(256, through);
    simulated_stream s = w.device.create_stream();
    void* p = w.allocate(mebibyte, s);
    for (int i = 0; i < 2000; ++i) {
      s = heir_of(w, s, through);
      w.free(p, mebibyte, s);
      p = w.allocate(mebibyte, s);
      w.device.run_all();
    }
    w.free(p, mebibyte, s);
    CHECK(w.pool->stats().peak_held <= 512 * mebibyte);
    CHECK(w.pool->stats().streams <= 256);
    CHECK(w.pool->stats().live_events <= 512);
    nothing_is_lost(w);
  }
}

TEST_CASE("a bound stream with the handle of a dead one gets and gives only its own") {
  for (const pool_options& options : all_options()) {
    world w{options};
    const simulated_stream through = w.device.create_stream();
    w.turn(256, through);
    const simulated_stream old = w.device.create_stream();
    w.turn(mebibyte, old);
    void* const p = w.allocate(mebibyte, old);
    void* const q = w.allocate(mebibyte, old);
    const auto gate = w.device.gate(old);
    w.free(p, mebibyte, old);
    w.device.destroy_stream(old);
    const simulated_stream young = w.device.create_stream();
    REQUIRE(young == old);
    const auto on = w.pool->on(young);
    void* const r = on.allocate(mebibyte);
    w.device.hand_out(young, r, mebibyte);  // the judge sees a block that is the dead one's
    w.device.hand_back(young, r, mebibyte);
    on.deallocate(r, mebibyte);
    w.device.open(gate);
    w.device.synchronize();
    w.device.hand_back(young, q, mebibyte);
    on.deallocate(q, mebibyte);
    w.turn(mebibyte, young);
    nothing_is_lost(w);
  }
}

TEST_CASE("a thread that remembers a dead stream frees by its handle after others swept it") {
  world w;
  const simulated_stream through = w.device.create_stream();
  w.turn(256, through);
  simulated_stream old = w.device.create_stream();
  void* const p = w.allocate(mebibyte, old);
  w.device.run_all();
  std::thread{[&] {
    for (int i = 0; i < 300; ++i) {
      old = heir_of(w, old, through);
      w.turn(256, old);
      w.device.run_all();
    }
  }}.join();
  const auto gate = w.device.gate(old);
  w.free(p, mebibyte, old);
  w.turn(mebibyte, through);
  w.device.open(gate);
  nothing_is_lost(w);
}

TEST_CASE("a thread that remembers a stream's record leaves it alone once it is another stream's") {
  for (const pool_options& options : all_options()) {
    world w{options};
    const simulated_stream s = w.device.create_stream();
    w.turn(256, s);
    void* const p = w.allocate(mebibyte, s);
    w.pool->retire(s);  // or what was freed on it would keep its record
    std::vector<simulated_stream> others;
    std::thread{[&] {
      for (int i = 0; i < 300; ++i) {  // enough for the first one's record to be used again
        others.push_back(w.device.create_stream());
        w.turn(256, others.back());
        if (i < 100) {
          w.device.run_all();
        }
      }
      for (const simulated_stream other : others) {
        (void)w.device.gate(other);
        w.turn(256, other);
      }
    }}.join();
    void* const q = w.allocate(256, s);  // the judge sees a block that is another stream's
    (void)w.device.gate(s);
    w.free(q, 256, s);
    w.free(p, mebibyte, s);
    std::thread{[&] {
      for (const simulated_stream other : others) {
        w.turn(mebibyte, other);  // the judge sees one that is the first stream's
      }
    }}.join();
    nothing_is_lost(w);
  }
}

TEST_CASE("a pool at the address of a dead one knows nothing of its streams") {
  for (const pool_options& options : all_options()) {
    world w{options};
    const simulated_stream s = w.device.create_stream();
    for (int i = 0; i < 20; ++i) {
      void* const p = w.turn(mebibyte, s);
      w.turn(40 * mebibyte, s);
      w.pool.reset();
      w.pool.emplace(pagesift::simulated_backend{w.device}, with_backing(options));
      w.pool->deallocate(p, mebibyte, s);
      CHECK(w.pool->stats().rejected_frees == 1);
      CHECK(w.pool->stats().streams == 0);
    }
    w.turn(mebibyte, s);
    nothing_is_lost(w);
  }
}

TEST_CASE("per-thread default streams of threads that come and go keep to themselves") {
  for (const pool_options& options : all_options()) {
    world w{options};
    const simulated_stream mine = pagesift::simulated_per_thread_stream;
    std::vector<void*> blocks;
    for (int i = 0; i < 100; ++i) {
      std::thread{[&] {
        w.turn(5000, mine);
        (void)w.device.gate(mine);
        w.turn(5000, mine);
        blocks.push_back(w.allocate(mebibyte, mine));
        if (blocks.size() > 3) {  // of a thread that has ended
          void* const p = blocks.front();
          blocks.erase(blocks.begin());
          w.device.open_all_gates();
          w.device.synchronize();
          w.free(p, mebibyte, mine);
        }
        const auto on = w.pool->on(mine);
        on.deallocate(on.allocate(5000), 5000);
      }}.join();
    }
    w.device.open_all_gates();
    w.device.synchronize();
    for (void* const p : blocks) {
      w.free(p, mebibyte, mine);
    }
    nothing_is_lost(w);
  }
}

namespace {

/// Streams that die and are born with the same handles, and blocks that outlive them, at random,
/// on two pools.
class random_heirs {
 public:
  random_heirs(std::uint64_t seed, const pool_options& options)
      : random_{seed}, w_{options, busy()} {
    second_.emplace(pagesift::simulated_backend{w_.device}, with_backing(options));
    through_ = w_.device.create_stream();
    for (simulated_stream& s : streams_) {
      s = w_.device.create_stream();
    }
  }

  void run(int operations) {
    for (int i = 0; i < operations && w_.device.violations().empty(); ++i) {
      one_operation(below(100));
    }
    while (!blocks_.empty()) {
      free_one();
    }
    check_invariants(second_->stats());
    CHECK(second_->stats().in_use == 0);
    second_->trim();
    CHECK(second_->stats().held == 0);
    nothing_is_lost(w_);
    second_.reset();
  }

 private:
  struct live_block {
    void* p;
    std::size_t bytes;
    std::size_t owner;
    bool second;
  };

  static simulated_options busy() {
    simulated_options options = with_budget(512 * mebibyte);
    options.on_blocked_wait = pagesift::blocked_wait::opens_gates;
    return options;
  }

  std::size_t below(std::size_t end) { return static_cast<std::size_t>(random_() % end); }
  simulated_pool& pool(bool second) { return second ? *second_ : *w_.pool; }

  void one_operation(std::size_t dice) {
    if (dice < 45) {
      allocate();
    } else if (dice < 75) {
      free_one();
    } else if (dice < 90) {
      replace(below(streams_.size()));
    } else if (dice < 95) {
      w_.device.run_some();
    } else if (dice < 97) {
      (void)w_.device.gate(streams_[below(streams_.size())]);
    } else if (dice < 98) {
      pool(below(2) == 0).retire(streams_[below(streams_.size())]);
    } else if (dice < 99 && below(20) == 0) {
      pool(below(2) == 0).trim(below(64) * mebibyte);
    } else {
      pool(below(2) == 0).deallocate(this, 1, streams_[below(streams_.size())]);  // not its own
    }
  }

  void allocate() {
    if (blocks_.size() > 40) {
      return free_one();
    }
    const std::size_t owner = below(streams_.size());
    const std::size_t bytes = std::size_t{256} << below(15);
    const bool second = below(4) == 0;
    const simulated_stream s = streams_[owner];
    void* const p =
        below(3) == 0 ? pool(second).on(s).allocate(bytes) : pool(second).allocate(bytes, s);
    w_.device.hand_out(s, p, bytes);
    w_.device.use(s, p, bytes);
    blocks_.push_back({p, bytes, owner, second});
  }

  /// Frees a block on the stream that now has the handle it was handed out by.
  void free_one() {
    if (blocks_.empty()) {
      return;
    }
    std::swap(blocks_[below(blocks_.size())], blocks_.back());
    const live_block b = blocks_.back();
    blocks_.pop_back();
    const simulated_stream s = streams_[b.owner];
    w_.device.hand_back(s, b.p, b.bytes);
    if (below(3) == 0) {
      pool(b.second).on(s).deallocate(b.p, b.bytes);
    } else {
      pool(b.second).deallocate(b.p, b.bytes, s);
    }
  }

  void replace(std::size_t place) {
    if (below(3) == 0) {
      pool(below(2) == 0).retire(streams_[place]);
    }
    streams_[place] = heir_of(w_, streams_[place], through_);
  }

  std::mt19937_64 random_;
  world w_;
  std::optional<simulated_pool> second_;
  simulated_stream through_;
  std::array<simulated_stream, 6> streams_{};
  std::vector<live_block> blocks_;
};

}  // namespace

TEST_CASE("streams that inherit handles at random never get memory too early, and lose none") {
  std::uint64_t seed = 0;
  for (const pool_options& options : all_options()) {
    for (int i = 0; i < 4; ++i) {
      random_heirs{++seed, options}.run(PAGESIFT_RECYCLING_OPERATIONS);
    }
  }
}
