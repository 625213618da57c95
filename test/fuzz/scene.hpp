// What a player plays with: a simulated device, pools on it, streams, and blocks in users' hands.
#pragma once

#include "choices.hpp"

#include <pagesift/backend/simulated.hpp>
#include <pagesift/pool/pool.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fuzz {

using pagesift::kibibyte;
using pagesift::mebibyte;
using pagesift::simulated_call;
using pagesift::simulated_stream;
using pool_type = pagesift::basic_pool<pagesift::simulated_backend>;

inline constexpr std::size_t stream_count = 6;  // the default stream, the thread's own, 4 created
inline constexpr std::size_t first_created = 2;

/// A block in a user's hands.
struct live_block {
  void* p;
  std::size_t bytes;
  std::size_t owner;           ///< the stream after whose work the block is free, by place
  std::size_t pool;            ///< by place
  std::uint64_t home = 0;      ///< the capture that it was handed out in, or 0
  std::uint64_t named_by = 0;  ///< another capture whose graph uses it and may run, or 0
  std::size_t named_on = 0;    ///< the stream of the last such use, by place
};

/// A stream by place: what names it now, and whether it records a graph.
struct stream_place {
  simulated_stream handle;
  std::uint64_t capture = 0;  ///< the number of the capture that it takes part in, or 0

  [[nodiscard]] bool capturing() const { return capture != 0; }
};

struct pool_place {
  std::unique_ptr<pool_type> pool;
  std::array<std::optional<pagesift::bound_stream<pool_type>>, stream_count> bound;
  std::uint64_t rejected = 0;  ///< frees that this pool had to reject
};

/// What a scene is made of; everything follows from the choices.
struct scene_options {
  std::size_t budget = 64 * mebibyte;
  std::size_t pools = 1;
  pagesift::simulated_options device;

  [[nodiscard]] static scene_options chosen(choices& by) {
    scene_options o;
    o.budget = (std::size_t{32} << by.below(5)) * mebibyte;
    o.pools = by.one_in(4) ? 2 : 1;
    o.device.budget_bytes = o.budget;
    o.device.reservation_bytes = 16 * pagesift::gibibyte;
    o.device.seed = by.below(256) + 1;
    o.device.page_aligned = !by.one_in(4);
    o.device.relaxed_sections = true;
    o.device.tells_late = o.device.seed % 2 == 0;
    o.device.prompt = by.one_in(4);
    o.device.on_blocked_wait = pagesift::blocked_wait::opens_gates;
    return o;
  }
};

/// Options of one pool, as far as they follow from choices.
[[nodiscard]] inline pagesift::pool_options chosen_pool(choices& by, std::size_t budget) {
  pagesift::pool_options o;
  o.backing = by.below(2) == 0 ? pagesift::backing::virtual_memory : pagesift::backing::plain;
  o.limit_bytes = by.one_in(3) ? budget / 2 + by.below(4) * mebibyte : pagesift::no_limit;
  o.initial_bytes = by.one_in(6) ? budget / 4 : 0;
  o.seal_bytes = by.one_in(2) ? 256 * kibibyte : 32 * mebibyte;
  o.checks = by.one_in(4) ? pagesift::checks::trusted : pagesift::checks::standard;
  o.exact_peaks = by.one_in(4);
  return o;
}

class scene {
 public:
  explicit scene(const scene_options& options)
      : budget{options.budget}, device{options.device}, pools(options.pools) {
    streams[1].handle = pagesift::simulated_per_thread_stream;
    for (std::size_t i = first_created; i < stream_count; ++i) {
      streams[i].handle = device.create_stream();
    }
  }

  /// One sentence for each thing that was wrong.
  [[nodiscard]] std::vector<std::string> complaints() const {
    std::vector<std::string> all = device.violations();
    all.insert(all.end(), own_complaints.begin(), own_complaints.end());
    return all;
  }
  [[nodiscard]] bool sound() const {
    return own_complaints.empty() && device.violation_count() == 0;
  }

  void expect(bool holds, const char* what) {
    if (!holds) {
      own_complaints.emplace_back(what);
    }
  }

  [[nodiscard]] bool is_live(const void* p) const { return live_addresses.count(p) != 0; }

  void note_live(const live_block& b) {
    blocks.push_back(b);
    live_addresses.insert(b.p);
    live_bytes += b.bytes;
  }

  [[nodiscard]] live_block take(std::size_t i) {
    std::swap(blocks[i], blocks.back());
    const live_block b = blocks.back();
    blocks.pop_back();
    live_addresses.erase(b.p);
    live_bytes -= b.bytes;
    return b;
  }

  [[nodiscard]] bool has_blocks_of(std::size_t pool) const {
    return std::any_of(blocks.begin(), blocks.end(),
                       [pool](const live_block& b) { return b.pool == pool; });
  }

  [[nodiscard]] bool capture_in_progress() const {
    for (const stream_place& s : streams) {
      if (s.capturing()) {
        return true;
      }
    }
    return false;
  }

  /// Compares what the pools count with what the device has and the users hold.
  void compare_counts() {
    std::size_t held = 0;
    std::size_t events = 0;
    for (std::size_t i = 0; i < pools.size(); ++i) {
      const pagesift::pool_stats stats = pools[i].pool->stats();
      held += stats.held;
      events += stats.live_events;
      compare_one(i, stats);
    }
    expect(held == device.acquired_bytes() + device.physical_bytes(),
           "the pools count other bytes held than the device has given");
    expect(events == device.live_events(), "the pools count other events than there are");
  }

  std::size_t budget;
  pagesift::simulated_device device;
  std::vector<pool_place> pools;
  std::array<stream_place, stream_count> streams{};
  std::vector<live_block> blocks;
  std::set<const void*> live_addresses;
  std::size_t live_bytes = 0;
  std::vector<std::string> own_complaints;

 private:
  void compare_one(std::size_t place, const pagesift::pool_stats& stats) {
    std::size_t number = 0;
    std::size_t bytes = 0;
    for (const live_block& b : blocks) {
      number += b.pool == place ? 1 : 0;
      bytes += b.pool == place ? b.bytes : 0;
    }
    std::size_t counted = 0;
    std::size_t counted_bytes = 0;
    for (const pagesift::class_stats& c : stats.classes) {
      counted += c.in_use_blocks;
      counted_bytes += c.in_use_bytes;
    }
    expect(counted == number, "a pool counts other blocks in use than its users have");
    expect(counted_bytes == stats.in_use, "the classes do not add up to the bytes in use");
    expect(stats.in_use >= bytes, "a pool counts less in use than its users have");
    expect(stats.held == stats.in_use + stats.idle, "held is not what is in use and idle");
    expect(stats.peak_held >= stats.held, "the peak of bytes held is below them");
    expect(stats.peak_in_use >= stats.in_use, "the peak of bytes in use is below them");
    expect(stats.largest_idle_block <= stats.idle,
           "one idle block is larger than all that is idle");
    expect(stats.rejected_frees == pools[place].rejected,
           "a pool rejected other frees than bad ones");
    expect(stats.peak_held <= pools[place].pool->options().limit_bytes, "a limit was exceeded");
  }
};

}  // namespace fuzz
