// A player of a scene: does what users of pools may do, as its choices say, and complains where
// something comes out that must not.
#pragma once

#include "graph_user.hpp"
#include "scene.hpp"

#include <pagesift/core/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace fuzz {

/// What a user may throw out of the pool's question for memory.
struct user_gave_up : std::exception {};

class player {
 public:
  explicit player(choices& by) : player{by, scene_options::chosen(by)} {}

  player(choices& by, const scene_options& options) : by_{by}, scene_{options} {
    for (std::size_t i = 0; i < scene_.pools.size(); ++i) {
      make_pool(i);
    }
    if (by_.one_in(3)) {
      scene_.device.before_calls([this](simulated_call call) { meanwhile(call); });
    }
  }
  player(const player&) = delete;
  player& operator=(const player&) = delete;
  ~player() { scene_.device.before_calls({}); }

  /// Does one thing. Returns whether all is well.
  bool step() {
    ++operations_;
    one_operation(by_.below(256));
    return scene_.sound();
  }

  /// Gives everything back; whatever is then not back with the device is lost.
  void finish() {
    end_faults();
    scene_.device.before_calls({});
    graphs_.end_all();
    while (!scene_.blocks.empty()) {
      free_block(scene_.blocks.size() - 1, false);
    }
    scene_.compare_counts();
    scene_.device.open_all_gates();
    graphs_.bring_all_to_an_end();
    for (pool_place& place : scene_.pools) {
      scene_.expect(place.pool->stats().captured == 0, "memory is kept for graphs that are over");
      guarded([&] { place.pool->trim(); });
      lost_ += place.pool->stats().held;
      scene_.expect(place.pool->stats().held == 0, "a trim of an idle pool left memory behind");
      place.bound = {};
      place.pool.reset();
    }
    expect_empty_device();
  }

  [[nodiscard]] const scene& state() const { return scene_; }
  [[nodiscard]] std::uint64_t operations() const { return operations_; }
  [[nodiscard]] std::uint64_t faults() const { return faults_; }
  [[nodiscard]] std::uint64_t shortages() const { return shortages_; }
  [[nodiscard]] const graph_user& graphs() const { return graphs_; }
  [[nodiscard]] std::size_t lost_bytes() const { return lost_; }

 private:
  static constexpr std::size_t first_free = 104;  // of the dice of an operation

  [[nodiscard]] std::size_t any_stream() { return by_.below(stream_count); }
  [[nodiscard]] std::size_t any_pool() { return by_.below(scene_.pools.size()); }
  [[nodiscard]] simulated_stream handle(std::size_t s) const { return scene_.streams[s].handle; }

  // Most inputs should be able to reach everything, so the rare things are not too rare.
  void one_operation(std::size_t dice) {
    if (dice < first_free) {
      allocate();
    } else if (dice < 184) {
      free_any();
    } else if (dice < 192) {
      graph_operation(by_.below(16));
    } else if (dice < 200) {
      use_elsewhere();
    } else if (dice < 212) {
      scene_.device.run_some();
    } else if (dice < 214) {
      scene_.device.run_all();
    } else if (dice < 215) {
      scene_.device.synchronize(handle(any_stream()));
    } else if (dice < 222) {
      close_or_open_a_gate();
    } else if (dice < 234) {
      outermost([this] { replace_stream(); });
    } else {
      rare_operation(by_.below(64));
    }
  }

  void graph_operation(std::size_t dice) {
    if (dice < 2) {
      outermost([this] { begin_capture(any_stream()); });
    } else if (dice < 4) {
      outermost([this] { graphs_.end(any_stream()); });
    } else if (dice < 8) {
      outermost([this] { graphs_.fork_or_join(); });
    } else if (dice < 12) {
      graphs_.launch();
    } else if (dice < 13) {
      graphs_.drop_any();
    } else if (dice < 14) {
      graphs_.instantiate_again();
    } else if (dice < 15) {
      graphs_.update();
    } else {
      scene_.device.tell_of_endings();
    }
  }

  void rare_operation(std::size_t dice) {
    if (dice < 6) {
      const std::size_t keep = by_.below(2) * by_.below(256) * (scene_.budget / 256);
      pool_type& pool = *scene_.pools[any_pool()].pool;
      guarded([&] { pool.trim(keep); });
    } else if (dice < 10) {
      guarded([&] { scene_.pools[any_pool()].pool->end_batch(); });
    } else if (dice < 18) {
      guarded([&] { scene_.pools[any_pool()].pool->retire(handle(any_stream())); });
    } else if (dice < 24) {
      scene_.device.set_budget(scene_.budget / 8 + by_.below(8) * (scene_.budget / 8));
      live_bound_ = scene_.budget >> by_.below(7);
    } else if (dice < 34) {
      free_badly();
    } else if (dice < 38) {
      outermost([this] { begin_capture(any_stream()); });
    } else if (dice < 44) {
      outermost([this] { graphs_.end(any_stream()); });
    } else if (dice < 47) {
      outermost([this] { remake_pool(any_pool()); });
    } else if (dice < 50) {
      outermost([this] { scene_.compare_counts(); });
    } else if (dice < 51) {
      scene_.pools[any_pool()].pool->reset_peaks();
    } else {
      outermost([this] { with_a_fault(); });
    }
  }

  /// Does what may not be done while a call of a pool is in progress.
  template <typename Act>
  void outermost(Act act) {
    if (depth_ == 0) {
      act();
    }
  }

  /// What other threads do while a call of a pool is inside the backend, as if one came in there.
  /// Asking after events and graphs is what is done with the pool's mutex held. A request that
  /// comes in while memory is on its way may wait for that, in this thread for ever: so none does.
  void meanwhile(simulated_call call) {
    if (depth_ != 0 || call == simulated_call::query || call == simulated_call::destroy_event ||
        call == simulated_call::nodes_before || quiet_ || !by_.one_in(8)) {
      return;
    }
    const bool moves_memory = call == simulated_call::acquire || call == simulated_call::release ||
                              call >= simulated_call::reserve;
    ++depth_;
    ++interruptions_;
    one_operation(moves_memory ? first_free + by_.below(256 - first_free) : by_.below(256));
    --depth_;
  }

  /// Threads that capture into one graph take turns: whether nobody else is in a call on a stream
  /// of the capture that `s` takes part in.
  [[nodiscard]] bool has_turn(std::size_t s) const {
    return depth_ == 0 || !scene_.streams[s].capturing() || scene_.streams[s].capture != busy_;
  }

  /// Calls a pool, on a stream of a capture perhaps.
  template <typename Call>
  auto in_turn(std::size_t s, Call call) {
    struct restored {
      std::uint64_t& value;
      std::uint64_t before;
      ~restored() { value = before; }
    };
    const restored restored{busy_, busy_};
    if (depth_ == 0 && scene_.streams[s].capturing()) {
      busy_ = scene_.streams[s].capture;
    }
    return call();
  }

  /// Sizes of all magnitudes up to half the budget, small ones more often.
  [[nodiscard]] std::size_t any_size() {
    const std::size_t magnitude = by_.below(27);
    const std::size_t bytes = std::size_t{1}
                              << (magnitude < 16 ? magnitude : magnitude - by_.below(16));
    const std::size_t eighths = by_.below(9);
    const std::size_t odd = by_.below(3);
    const std::size_t sum = bytes + bytes / 8 * eighths + odd;
    return sum == 0 ? 0 : sum - 1;
  }

  [[nodiscard]] std::size_t any_alignment() {
    return by_.one_in(8) ? std::size_t{1} << by_.below(22) : pagesift::default_alignment;
  }

  void allocate() {
    constexpr std::size_t most_blocks = 256;
    if (scene_.blocks.size() > most_blocks || scene_.live_bytes > live_bound_) {
      return free_any();
    }
    const std::size_t pool = any_pool();
    const std::size_t s = any_stream();
    const std::size_t bytes = any_size();
    const std::size_t alignment = any_alignment();
    const std::size_t way = by_.below(16);
    const std::uint64_t interruptions_before = interruptions_;
    if (!has_turn(s)) {
      return;
    }
    try {
      void* const p = in_turn(s, [&] {
        return way == 15  ? scene_.pools[pool].pool->allocate_sync(bytes, alignment)
               : way > 10 ? allocate_bound(pool, s, bytes, alignment)
                          : scene_.pools[pool].pool->allocate(bytes, alignment, handle(s));
      });
      received({p, bytes, s, pool, way == 15 ? 0 : scene_.streams[s].capture}, alignment,
               way == 15);
    } catch (const pagesift::out_of_memory&) {
      ++shortages_;
      if (interruptions_ == interruptions_before) {
        check_shortage(pool, bytes, alignment);
      }
    } catch (...) {
      caught();
    }
  }

  [[nodiscard]] void* allocate_bound(std::size_t pool, std::size_t s, std::size_t bytes,
                                     std::size_t alignment) {
    pool_place& place = scene_.pools[pool];
    if (!may_use_bound(place, s)) {
      return place.pool->allocate(bytes, alignment, handle(s));
    }
    if (!place.bound[s]) {
      place.bound[s].emplace(place.pool->on(handle(s)));
    }
    return place.bound[s]->allocate(bytes, alignment);
  }

  /// Users of trusted checks promise not to capture through a bound stream; and nobody can bind one
  /// that captures.
  [[nodiscard]] bool may_use_bound(const pool_place& place, std::size_t s) const {
    const bool trusted = place.pool->options().checks == pagesift::checks::trusted;
    return !scene_.streams[s].capturing() || (!trusted && place.bound[s]);
  }

  void received(const live_block& b, std::size_t alignment, bool without_stream) {
    if (without_stream) {
      scene_.device.hand_out(b.p, b.bytes);
    } else {
      scene_.device.hand_out(handle(b.owner), b.p, b.bytes);
      graphs_.note_told(b.owner, b.pool);
    }
    scene_.expect(b.p != nullptr, "a request was answered with null");
    scene_.expect(!scene_.is_live(b.p), "a block was handed out that somebody has");
    scene_.expect(reinterpret_cast<std::uintptr_t>(b.p) % alignment == 0, "not aligned");
    scene_.note_live(b);
    if (by_.below(4) != 0) {
      use_on(scene_.blocks.back(), b.owner);
    }
  }

  /// A kernel on `s`, the block's owner or a stream that captures, uses it.
  void use_on(live_block& b, std::size_t s) {
    if (scene_.streams[s].capturing()) {
      graphs_.use_in_capture(b, s);
    } else {
      scene_.device.use(handle(s), b.p, b.bytes);
    }
  }

  /// A pool with nothing in use can serve whatever limit and device have room for.
  void check_shortage(std::size_t pool, std::size_t bytes, std::size_t alignment) {
    if (depth_ != 0 || faulty_ || scene_.has_blocks_of(pool) || scene_.capture_in_progress()) {
      return;
    }
    const pagesift::pool_stats stats = scene_.pools[pool].pool->stats();
    if (stats.captured != 0) {
      return;
    }
    const std::size_t others =
        scene_.device.acquired_bytes() + scene_.device.physical_bytes() - stats.held;
    const std::size_t budget = scene_.device.budget();
    const std::size_t limit = scene_.pools[pool].pool->options().limit_bytes;
    const std::size_t most = std::min(limit, budget > others ? budget - others : 0);
    const std::size_t needed = bytes + alignment + 4 * mebibyte;  // pages, and one to align in
    scene_.expect(needed > most, "out of memory in a pool that has nothing in use");
  }

  void free_any() {
    if (!scene_.blocks.empty()) {
      free_block(by_.below(scene_.blocks.size()), by_.one_in(3));
    }
  }

  /// Frees on the stream the block belongs to, or `elsewhere`: on another that waits for it, or in
  /// a capture. Does nothing where no rule allows a free now.
  void free_block(std::size_t i, bool elsewhere) {
    const std::uint64_t namer = scene_.blocks[i].named_by;
    if (namer != 0 && !graphs_.in_progress(namer)) {
      graphs_.bring_to_an_end(namer);
    }
    const std::size_t s = place_to_free(scene_.blocks[i], elsewhere);
    if (s < stream_count) {
      free_on(scene_.take(i), s);
    }
  }

  /// The stream to free a block on, which then waits for all its uses that the graphs' rules do not
  /// care for; or none, by place.
  [[nodiscard]] std::size_t place_to_free(const live_block& b, bool elsewhere) {
    const bool in_its_capture = graphs_.in_progress(b.home);
    if (in_its_capture || b.named_by != 0) {
      const std::size_t used_on = in_its_capture ? b.owner : b.named_on;
      if (!may_free_in_capture(b, used_on)) {
        return stream_count;
      }
      const std::size_t s = elsewhere ? graphs_.any_member_beside(used_on) : used_on;
      graphs_.order(used_on, s);
      return s;
    }
    const std::size_t s = elsewhere ? any_stream() : b.owner;
    if (scene_.streams[s].capturing() && may_free_in_capture(b, s)) {
      return s;  // whatever the graph is launched behind
    }
    if (scene_.streams[b.owner].capturing()) {  // what it did before has no other place to wait at
      scene_.device.synchronize();
      return graphs_.any_eager();
    }
    if (scene_.streams[s].capturing()) {
      return b.owner;
    }
    graphs_.order(b.owner, s);
    return s;
  }

  /// A block that is freed in a capture needs a pool that knows of it. One that is freed while the
  /// graph cannot be looked at is kept for good, which would be lost in the end.
  [[nodiscard]] bool may_free_in_capture(const live_block& b, std::size_t s) const {
    return graphs_.told(s, b.pool) && has_turn(s) && !faulty_;
  }

  void free_on(const live_block& b, std::size_t s) {
    pool_place& place = scene_.pools[b.pool];
    const std::size_t way = by_.below(16);
    const bool captured = scene_.streams[s].capturing();
    if (way == 15 && b.named_by == 0) {
      captured ? scene_.device.hand_back(b.p, b.bytes)
               : scene_.device.hand_back(handle(s), b.p, b.bytes);
      return place.pool->deallocate_sync(b.p, b.bytes);
    }
    scene_.device.hand_back(handle(s), b.p, b.bytes);
    in_turn(s, [&] {
      if (way > 10 && place.bound[s] && may_use_bound(place, s)) {
        place.bound[s]->deallocate(b.p, b.bytes);
      } else {
        place.pool->deallocate(b.p, b.bytes, handle(s));
      }
    });
    if (by_.one_in(32)) {
      free_again(b, s);
    }
  }

  void free_again(const live_block& b, std::size_t s) {
    if (!scene_.is_live(b.p)) {
      free_rejected(b.pool, b.p, b.bytes, s);
    }
  }

  /// Frees what the pool has not handed out; nobody comes in and gets just that meanwhile.
  void free_rejected(std::size_t pool, void* p, std::size_t bytes, std::size_t s) {
    const bool was_quiet = std::exchange(quiet_, true);
    ++scene_.pools[pool].rejected;
    scene_.pools[pool].pool->deallocate(p, bytes, handle(s));
    quiet_ = was_quiet;
  }

  /// Frees what the pool did not hand out: another pool's block, the middle of one, a local.
  void free_badly() {
    const std::size_t pool = any_pool();
    const std::size_t s = any_stream();
    int local = 0;
    const void* p = &local;
    if (!scene_.blocks.empty()) {
      const live_block& b = scene_.blocks[by_.below(scene_.blocks.size())];
      const std::size_t shift = by_.below(4) * 128 + by_.below(3) * mebibyte;
      p = static_cast<const std::byte*>(b.p) + shift;
    }
    const bool is_its_own = scene_.is_live(p) && owner_of(p) == pool;
    if (!is_its_own) {
      free_rejected(pool, const_cast<void*>(p), 256, s);
    }
  }

  [[nodiscard]] std::size_t owner_of(const void* p) const {
    const auto found = std::find_if(scene_.blocks.begin(), scene_.blocks.end(),
                                    [p](const live_block& b) { return b.p == p; });
    return found->pool;
  }

  /// A second stream uses a block, and the owner waits for that.
  void use_elsewhere() {
    if (scene_.blocks.empty()) {
      return;
    }
    live_block& b = scene_.blocks[by_.below(scene_.blocks.size())];
    const std::size_t other = any_stream();
    if (scene_.streams[other].capturing() && has_turn(other)) {
      graphs_.use_in_capture(b, other);
    } else if (!scene_.streams[other].capturing() && !scene_.streams[b.owner].capturing()) {
      scene_.device.order(handle(b.owner), handle(other));
      scene_.device.use(handle(other), b.p, b.bytes);
      scene_.device.order(handle(other), handle(b.owner));
    }
  }

  void close_or_open_a_gate() {
    const std::size_t s = any_stream();
    if (gates_.size() >= 3) {
      scene_.device.open(gates_.front());
      gates_.erase(gates_.begin());
    } else if (!scene_.streams[s].capturing()) {
      gates_.push_back(scene_.device.gate(handle(s)));
    }
  }

  /// Blocks of a stream that goes are in the order of another one from then on.
  void replace_stream() {
    const std::size_t gone = first_created + by_.below(stream_count - first_created);
    const std::size_t heir = any_stream();
    if (heir == gone || scene_.streams[gone].capturing() || scene_.streams[heir].capturing()) {
      return;
    }
    if (by_.below(2) == 0) {
      guarded([&] { scene_.pools[any_pool()].pool->retire(handle(gone)); });
    }
    scene_.device.order(handle(gone), handle(heir));
    for (live_block& b : scene_.blocks) {
      b.owner = b.owner == gone ? heir : b.owner;
    }
    graphs_.inherit(gone, heir);
    scene_.device.destroy_stream(handle(gone));
    scene_.streams[gone].handle = scene_.device.create_stream();
    for (pool_place& place : scene_.pools) {
      place.bound[gone].reset();
    }
  }

  /// Begins a capture and, mostly, shows it to every pool.
  void begin_capture(std::size_t s) {
    if (graphs_.begin(s) && !faulty_ && by_.below(4) != 0) {
      quiet_ = true;
      for (std::size_t i = 0; i < scene_.pools.size(); ++i) {
        ask_while_capturing(i, s);
      }
      quiet_ = false;
    }
  }

  void ask_while_capturing(std::size_t pool, std::size_t s) {
    try {
      void* const p = scene_.pools[pool].pool->allocate(256, handle(s));
      graphs_.note_told(s, pool);
      scene_.pools[pool].pool->deallocate(p, 256, handle(s));
    } catch (...) {
      caught();
    }
  }

  void remake_pool(std::size_t i) {
    if (scene_.capture_in_progress() || faulty_) {
      return;
    }
    quiet_ = true;
    for (std::size_t b = scene_.blocks.size(); b-- > 0;) {
      if (scene_.blocks[b].pool == i) {
        free_block(b, false);
      }
    }
    if (scene_.pools[i].pool->stats().captured != 0) {  // what graphs may name would stay mapped
      graphs_.bring_all_to_an_end();
    }
    scene_.pools[i].bound = {};
    scene_.pools[i].pool.reset();
    make_pool(i);
    quiet_ = false;
  }

  void make_pool(std::size_t i) {
    scene_.device.set_budget(scene_.budget);  // a pool takes what it sees for all there ever is
    pagesift::pool_options options = chosen_pool(by_, scene_.budget);
    if (by_.one_in(4)) {
      options.on_shortage = [this](std::size_t) { return asked_for_memory(); };
    }
    const pagesift::simulated_backend backend{scene_.device};
    try {
      scene_.pools[i].pool = std::make_unique<pool_type>(backend, options);
    } catch (const pagesift::out_of_memory&) {
      options.initial_bytes = 0;
      scene_.pools[i].pool = std::make_unique<pool_type>(backend, options);
    }
    scene_.pools[i].rejected = 0;
  }

  bool asked_for_memory() {
    if (by_.one_in(32)) {
      throw user_gave_up{};
    }
    const bool frees = !scene_.blocks.empty() && by_.below(2) == 0;
    if (frees) {
      ++interruptions_;
      free_any();
    }
    return frees;
  }

  void with_a_fault() {
    if (faulty_) {
      return;
    }
    const bool shortage = by_.below(2) == 0;
    pagesift::simulated_fault fault;
    fault.nth = 1 + by_.below(12);
    fault.repeats = fault.nth != 1 && by_.one_in(4);
    fault.result = shortage ? pagesift::outcome::shortage : pagesift::outcome::failed;
    fault.code =
        shortage ? pagesift::simulated_code::no_memory : pagesift::simulated_code::illegal_address;
    if (by_.one_in(2)) {
      fault.call = static_cast<simulated_call>(by_.below(pagesift::simulated_call_count));
      fault.nth = fault.repeats ? 2 : 1 + by_.below(2);
    }
    scene_.device.fail(fault);
    ++faults_;
    faulty_ = true;
    for (int i = 0; i < 4; ++i) {
      one_operation(by_.below(234));
    }
    end_faults();
  }

  void end_faults() {
    scene_.device.clear_faults();
    faulty_ = false;
  }

  /// Sorts out the exception in flight.
  void caught() {
    try {
      throw;
    } catch (const pagesift::out_of_memory&) {
      ++shortages_;
    } catch (const pagesift::backend_error& e) {
      if (!faulty_) {
        scene_.own_complaints.push_back(std::string{"without a fault: "} + e.what());
      }
    } catch (const user_gave_up&) {
    } catch (const std::exception& e) {
      scene_.own_complaints.push_back(std::string{"unexpected: "} + e.what());
    }
  }

  template <typename Operation>
  void guarded(Operation operation) {
    try {
      operation();
    } catch (...) {
      caught();
    }
  }

  void expect_empty_device() {
    const pagesift::simulated_device& device = scene_.device;
    lost_ += device.acquired_bytes() + device.physical_bytes() + device.reserved_bytes();
    scene_.expect(device.acquired_bytes() == 0, "acquired memory was lost");
    scene_.expect(device.physical_bytes() == 0, "physical memory was lost");
    scene_.expect(device.reserved_bytes() == 0, "addresses were lost");
    scene_.expect(device.live_events() == 0, "events were lost");
  }

  choices& by_;
  scene scene_;
  graph_user graphs_{by_, scene_};
  std::vector<pagesift::simulated_gate> gates_;
  std::size_t live_bound_ = scene_.budget;
  std::uint64_t operations_ = 0;
  std::uint64_t faults_ = 0;
  std::uint64_t shortages_ = 0;
  std::uint64_t interruptions_ = 0;  ///< what was done while a call of a pool was in progress
  std::size_t lost_ = 0;
  std::uint64_t busy_ = 0;  ///< the capture on a stream of which a call is in progress, or 0
  int depth_ = 0;
  bool quiet_ = false;  ///< nobody else comes in meanwhile
  bool faulty_ = false;
};

/// Plays until the choices are used up or something is wrong. Returns what was wrong.
inline std::vector<std::string> play(choices& by, std::uint64_t most_operations) {
  player one{by};
  bool sound = true;
  while (sound && by.more() && one.operations() < most_operations) {
    sound = one.step();
  }
  if (sound) {
    one.finish();
  }
  return one.state().complaints();
}

}  // namespace fuzz
