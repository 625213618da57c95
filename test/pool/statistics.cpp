// What a pool says about itself.
#include "world.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

TEST_CASE("held is in use and idle at every step, and classes add up") {
  world w;
  const simulated_stream s = w.device.create_stream();
  std::vector<void*> blocks;
  const std::vector<std::size_t> sizes{1,        256,          257,          5000,          70000,
                                       mebibyte, mebibyte + 1, 9 * mebibyte, 100 * mebibyte};
  for (const std::size_t bytes : sizes) {
    blocks.push_back(w.allocate(bytes, s));
    check_invariants(w.pool->stats());
    CHECK(blocks_in_use(w.pool->stats()) == blocks.size());
    CHECK(w.pool->stats().held == w.held_bytes());
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    w.free(blocks[i], sizes[i], s);
    check_invariants(w.pool->stats());
  }
  const pool_stats stats = w.pool->stats();
  CHECK(stats.in_use == 0);
  CHECK(stats.idle == stats.held);
  CHECK(stats.peak_in_use >= 110 * mebibyte);
  CHECK(stats.peak_held == stats.held);
}

TEST_CASE("bytes in use are counted in block sizes") {
  world w;
  const simulated_stream s{};
  void* const p = w.allocate(1, s);
  CHECK(w.pool->stats().in_use == 256);
  void* const q = w.allocate(2049, s);
  CHECK(w.pool->stats().in_use == 256 + 2304);
  const pool_stats stats = w.pool->stats();
  CHECK(class_bytes_in_use(stats) == 256 + 2304);
  w.free(p, 1, s);
  w.free(q, 2049, s);
}

TEST_CASE("a request served from idle memory is a hit, one that took memory is a miss") {
  world w{on_plain_memory()};
  const simulated_stream s{};
  void* const p = w.allocate(64 * mebibyte, s);
  CHECK(w.pool->stats().misses == 1);
  CHECK(w.pool->stats().hits == 0);
  CHECK(w.pool->stats().backend_allocations == w.device.calls(simulated_call::acquire));
  w.free(p, 64 * mebibyte, s);
  w.turn(64 * mebibyte, s);
  CHECK(w.pool->stats().misses == 1);
  CHECK(w.pool->stats().hits == 1);
}

TEST_CASE("resetting the peaks leaves the live totals, and peaks start from there") {
  world w;
  const simulated_stream s{};
  void* const kept = w.allocate(100, s);
  w.turn(32 * mebibyte, s);
  CHECK(w.pool->stats().peak_in_use >= 32 * mebibyte);
  const pool_stats before = w.pool->stats();
  w.pool->reset_peaks();
  const pool_stats after = w.pool->stats();
  CHECK(after.in_use == before.in_use);
  CHECK(after.held == before.held);
  CHECK(after.peak_in_use == after.in_use);
  CHECK(after.peak_held == after.held);
  CHECK(after.in_use == 256);
  w.free(kept, 100, s);
}

TEST_CASE("initial bytes are held from the start and serve requests") {
  pool_options options;
  options.initial_bytes = 9 * mebibyte;
  world w{options};
  CHECK(w.pool->stats().held == 10 * mebibyte);
  w.device.reset_calls();
  w.turn(4 * mebibyte, w.device.create_stream());
  CHECK(w.device.calls(simulated_call::acquire) == 0);
}

TEST_CASE("counters of events, waits, fences and memory are those of the calls that succeeded") {
  simulated_options device_options = with_budget(64 * mebibyte);
  device_options.keeps_log = true;
  world w{on_plain_memory(), device_options};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  for (int i = 0; i < 10; ++i) {
    w.turn(60 * mebibyte, i % 2 == 0 ? a : b);
  }
  w.pool->trim();
  const auto log = w.device.log();
  const auto succeeded = [&](simulated_call call) {
    return static_cast<std::uint64_t>(
        std::count_if(log.begin(), log.end(), [call](const pagesift::simulated_call_record& entry) {
          return entry.call == call && entry.result.ok();
        }));
  };
  const pool_stats stats = w.pool->stats();
  CHECK(stats.events_recorded == succeeded(simulated_call::record));
  CHECK(stats.stream_waits == succeeded(simulated_call::wait));
  CHECK(stats.fences == succeeded(simulated_call::fence));
  CHECK(stats.backend_allocations == succeeded(simulated_call::acquire));
  CHECK(stats.backend_releases == succeeded(simulated_call::release));
  CHECK(stats.live_events == w.device.live_events());
  CHECK(stats.stream_waits > 0);
  CHECK(stats.backend_releases > 0);
}
