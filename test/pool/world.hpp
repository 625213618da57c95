// A pool on a simulated device whose judge sees every block that the pool hands out.
#pragma once

#include <pagesift/backend/simulated.hpp>
#include <pagesift/pool/pool.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>

using pagesift::gibibyte;
using pagesift::kibibyte;
using pagesift::mebibyte;
using pagesift::pool_options;
using pagesift::pool_stats;
using pagesift::simulated_call;
using pagesift::simulated_options;
using pagesift::simulated_stream;

using simulated_pool = pagesift::basic_pool<pagesift::simulated_backend>;

inline std::size_t blocks_in_use(const pool_stats& stats) {
  return std::accumulate(
      stats.classes.begin(), stats.classes.end(), std::size_t{0},
      [](std::size_t sum, const pagesift::class_stats& c) { return sum + c.in_use_blocks; });
}

inline std::size_t class_bytes_in_use(const pool_stats& stats) {
  return std::accumulate(
      stats.classes.begin(), stats.classes.end(), std::size_t{0},
      [](std::size_t sum, const pagesift::class_stats& c) { return sum + c.in_use_bytes; });
}

/// What holds for the counters of every pool while no call is in progress.
inline void check_invariants(const pool_stats& stats) {
  CHECK(stats.held == stats.in_use + stats.idle);
  CHECK(stats.peak_held >= stats.held);
  CHECK(stats.peak_in_use >= stats.in_use);
  CHECK(stats.largest_idle_block <= stats.idle);
  CHECK(class_bytes_in_use(stats) == stats.in_use);
}

inline bool aligned(const void* p, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(p) % alignment == 0;
}

#ifndef PAGESIFT_TEST_BACKING
#define PAGESIFT_TEST_BACKING plain
#endif

/// The options of a test that leaves the backing to the program it is built into.
inline pool_options with_backing(pool_options options) {
  if (options.backing == pagesift::backing::automatic) {
    options.backing = pagesift::backing::PAGESIFT_TEST_BACKING;
  }
  return options;
}

inline pool_options with(pagesift::checks checks,
                         std::size_t seal_bytes = pool_options{}.seal_bytes) {
  pool_options options;
  options.checks = checks;
  options.seal_bytes = seal_bytes;
  return options;
}

inline pool_options trusted() { return with(pagesift::checks::trusted); }

/// For tests of what acquisitions alone do.
inline pool_options on_plain_memory() {
  pool_options options;
  options.backing = pagesift::backing::plain;
  return options;
}

inline pool_options on_mapped_memory() {
  pool_options options;
  options.backing = pagesift::backing::virtual_memory;
  return options;
}

/// A simulated device, a pool on it, and users who tell the judge what they get and give back.
class world {
 public:
  explicit world(const pool_options& options = {}, const simulated_options& device_options = {})
      : device{device_options} {
    pool.emplace(pagesift::simulated_backend{device}, with_backing(options));
  }
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  ~world() {
    device.clear_faults();
    device.open_all_gates();
    pool.reset();
    if (!leaves_memory_) {
      CHECK(device.acquired_bytes() == 0);
      CHECK(device.physical_bytes() == 0);
      CHECK(device.reserved_bytes() == 0);
    }
    CHECK(device.live_events() == 0);
    check_no_violations();
  }

  /// At the end some memory stays with the device: graphs may name it.
  void leaves_memory_behind() { leaves_memory_ = true; }

  void check_no_violations() const {
    for (const std::string& violation : device.violations()) {
      FAIL_CHECK(violation);
    }
  }

  /// A block that is used at once.
  [[nodiscard]] void* allocate(std::size_t bytes, simulated_stream s,
                               std::size_t alignment = pagesift::default_alignment) {
    void* const p = pool->allocate(bytes, alignment, s);
    device.hand_out(s, p, bytes);
    device.use(s, p, bytes);
    return p;
  }

  void free(void* p, std::size_t bytes, simulated_stream s) {
    device.hand_back(s, p, bytes);
    pool->deallocate(p, bytes, s);
  }

  /// A block allocated, used and freed on `s`; its address.
  void* turn(std::size_t bytes, simulated_stream s) {
    void* const p = allocate(bytes, s);
    free(p, bytes, s);
    return p;
  }

  /// What the pool has from the device, acquired or mapped.
  [[nodiscard]] std::size_t held_bytes() const {
    return device.acquired_bytes() + device.physical_bytes();
  }

  /// All calls that take, give back or order memory; looking at streams is not one.
  [[nodiscard]] std::uint64_t calls_with_effect() const {
    std::uint64_t calls = 0;
    for (const simulated_call call :
         {simulated_call::acquire, simulated_call::release, simulated_call::create_event,
          simulated_call::destroy_event, simulated_call::record, simulated_call::query,
          simulated_call::synchronize, simulated_call::wait, simulated_call::fence}) {
      calls += device.calls(call);
    }
    return calls;
  }

  /// Makes the pool see two streams, so that it has to think of order.
  void show_two_streams() {
    turn(256, device.create_stream());
    turn(256, device.create_stream());
  }

  pagesift::simulated_device device;
  std::optional<simulated_pool> pool;

 private:
  bool leaves_memory_ = false;
};

inline simulated_options with_budget(std::size_t bytes) {
  simulated_options options;
  options.budget_bytes = bytes;
  return options;
}

inline pool_options with_limit(std::size_t bytes) {
  pool_options options;
  options.limit_bytes = bytes;
  return options;
}
