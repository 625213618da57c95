// Every backend call of every public operation fails in its turn: what the operation leaves behind
// is what it found, the next one works, and nothing is lost. faults.cpp looks at single blocks;
// here it is all kinds of calls, the ways through a shortage, and whole lives of pools.
#include "world.hpp"

#include <exception>
#include <functional>
#include <vector>

namespace {

constexpr std::size_t budget = 128 * mebibyte;
constexpr std::size_t piece = 16 * mebibyte;

/// A full device: every second of its blocks is idle, the rest is kept; two streams are known.
struct full_device {
  explicit full_device(bool page_aligned) : w{{}, options(page_aligned)} {
    w.turn(256, b);
    std::vector<void*> blocks;
    try {
      while (true) {
        blocks.push_back(w.allocate(piece, a));
      }
    } catch (const pagesift::out_of_memory&) {
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (i % 2 == 0) {
        w.free(blocks[i], piece, a);
      } else {
        kept.push_back(blocks[i]);
      }
    }
  }

  void request(std::size_t bytes, simulated_stream s, std::size_t alignment = 256) {
    void* const p = w.allocate(bytes, s, alignment);
    w.free(p, bytes, s);
  }

  void free_kept() {
    for (void* const p : kept) {
      w.free(p, piece, a);
    }
    kept.clear();
  }

  static simulated_options options(bool page_aligned) {
    simulated_options options = with_budget(budget);
    options.page_aligned = page_aligned;
    return options;
  }

  world w;
  simulated_stream a = w.device.create_stream();
  simulated_stream b = w.device.create_stream();
  std::vector<void*> kept;
};

using full_device_operation = std::function<void(full_device&)>;

std::uint64_t all_calls(const pagesift::simulated_device& device) {
  std::uint64_t calls = 0;
  for (std::size_t i = 0; i < pagesift::simulated_call_count; ++i) {
    calls += device.calls(static_cast<simulated_call>(i));
  }
  return calls;
}

/// Runs `act`. \returns whether it ended without an exception
bool succeeds(const full_device_operation& act, full_device& t) {
  try {
    act(t);
    return true;
  } catch (const pagesift::backend_error&) {
  } catch (const pagesift::out_of_memory&) {
  }
  return false;
}

void check_counts(const full_device& t, std::size_t in_use_blocks) {
  const pool_stats stats = t.w.pool->stats();
  check_invariants(stats);
  CHECK(blocks_in_use(stats) == in_use_blocks);
  CHECK(stats.held == t.w.held_bytes());
  CHECK(t.w.device.mapped_bytes() == t.w.device.physical_bytes());
  CHECK(stats.live_events == t.w.device.live_events());
  CHECK(stats.rejected_frees == 0);
}

/// The n-th call fails. Returns whether the operation made so many.
bool survives(const full_device_operation& act, pagesift::simulated_fault fault, std::uint64_t n,
              bool page_aligned, bool works) {
  full_device t{page_aligned};
  t.w.device.reset_calls();
  fault.nth = n;
  t.w.device.fail(fault);
  (void)succeeds(act, t);
  const bool reached = all_calls(t.w.device) >= n;
  t.w.device.clear_faults();
  check_counts(t, t.kept.size());
  if (!t.kept.empty()) {
    CHECK(succeeds(act, t) == works);  // the next request works as if nothing had been
    check_counts(t, t.kept.size());
  }
  t.free_kept();
  t.w.pool->trim();
  CHECK(t.w.held_bytes() == 0);
  return reached;
}

void sweep_full_device(const full_device_operation& act) {
  for (const bool page_aligned : {true, false}) {
    full_device undisturbed{page_aligned};
    const bool works = succeeds(act, undisturbed);
    undisturbed.free_kept();
    for (const auto result : {pagesift::outcome::failed, pagesift::outcome::shortage}) {
      const int code = result == pagesift::outcome::failed ? 700 : 2;
      std::uint64_t n = 1;
      while (survives(act, {{}, n, false, result, code}, n, page_aligned, works)) {
        ++n;
      }
    }
  }
}

}  // namespace

TEST_CASE("on a full device any call may fail in a request put together from what is idle") {
  sweep_full_device([](full_device& t) { t.request(3 * piece, t.a); });
}

TEST_CASE("on a full device any call may fail in a request of a stream that owns nothing") {
  sweep_full_device([](full_device& t) { t.request(2 * piece, t.b); });
}

TEST_CASE("on a full device any call may fail in a request that splits a granule") {
  sweep_full_device([](full_device& t) { t.request(piece + 2 * mebibyte, t.b); });
}

TEST_CASE("on a full device any call may fail in small requests, aligned to pages and not") {
  sweep_full_device([](full_device& t) {
    t.request(1000, t.b);
    t.request(1000, t.b, 2 * mebibyte);
    t.request(3 * mebibyte, t.a);
  });
}

TEST_CASE("on a full device any call may fail in a request that can never be met") {
  sweep_full_device([](full_device& t) { t.request(budget - 2 * mebibyte, t.b); });
}

TEST_CASE("on a full device any call may fail in a trim that keeps some") {
  sweep_full_device([](full_device& t) { t.w.pool->trim(piece); });
}

TEST_CASE("any call may fail in a batch that ends, and in statistics, which make none") {
  sweep_full_device([](full_device& t) {
    t.w.pool->end_batch();
    t.request(1000, t.b);
    t.w.pool->end_batch();
    t.w.pool->end_batch();
  });
  full_device t{true};
  t.w.device.reset_calls();
  (void)t.w.pool->stats();
  t.w.pool->reset_peaks();
  CHECK(all_calls(t.w.device) == 0);
  t.free_kept();
}

TEST_CASE("any call may fail in requests and frees without a stream, on a full device") {
  sweep_full_device([](full_device& t) {
    void* const p = t.w.pool->allocate_sync(2 * piece);
    t.w.device.hand_out(p, 2 * piece);
    t.w.device.hand_back(p, 2 * piece);
    t.w.pool->deallocate_sync(p, 2 * piece);
  });
}

TEST_CASE("any call may fail in the frees of all that is in use, which never throw") {
  sweep_full_device([](full_device& t) { t.free_kept(); });
}

TEST_CASE("any call may fail when a pool is made: it is made whole or leaves nothing behind") {
  for (const auto result : {pagesift::outcome::failed, pagesift::outcome::shortage}) {
    const int code = result == pagesift::outcome::failed ? 700 : 2;
    std::uint64_t calls = 1;
    for (std::uint64_t n = 1; n <= calls + 1; ++n) {
      pagesift::simulated_device device{full_device::options(true)};
      pool_options options = with_backing({});
      options.initial_bytes = 100 * mebibyte;
      device.fail({{}, n, false, result, code});
      try {
        const simulated_pool pool{pagesift::simulated_backend{device}, options};
        device.clear_faults();
        CHECK(pool.stats().held == options.initial_bytes);
      } catch (const std::exception&) {
      }
      calls = all_calls(device);
      CHECK(device.acquired_bytes() + device.physical_bytes() + device.reserved_bytes() == 0);
      CHECK(device.violations().empty());
    }
  }
}

TEST_CASE(
    "any call may fail when a pool ends: what one call could not give back is all that stays") {
  for (std::uint64_t n = 1;; ++n) {
    pagesift::simulated_device device{full_device::options(true)};
    const simulated_stream s = device.create_stream();
    std::optional<simulated_pool> pool;
    pool.emplace(pagesift::simulated_backend{device}, with_backing({}));
    for (const std::size_t bytes : {40 * mebibyte, 20 * mebibyte, std::size_t{256}}) {
      pool->deallocate(pool->allocate(bytes, s), bytes, s);
    }
    pool->retire(s);
    const std::size_t held = device.acquired_bytes() + device.physical_bytes();
    device.reset_calls();
    device.fail({{}, n, false, pagesift::outcome::failed, 700});
    pool.reset();
    const std::size_t left = device.acquired_bytes() + device.physical_bytes();
    CHECK(left <= held);
    CHECK(device.live_events() <= 1);
    CHECK(device.violations().empty());
    if (all_calls(device) < n) {
      CHECK(left == 0);
      CHECK(device.reserved_bytes() == 0);
      break;
    }
  }
}
