// How full the device can be kept, how much is held for it and what the driver's calls for it would
// cost, over addresses alone: the benchmarks' random requests on a device that counts its calls.
#include "../../bench/churn.hpp"
#include "../../bench/trace.hpp"
#include "world.hpp"

#include <random>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t device_bytes = 139 * gibibyte;

/// A pool on a simulated device of 139 GiB, as the benchmarks see an allocator.
class counted_pool {
 public:
  [[nodiscard]] void* allocate(std::size_t bytes, bench::stream) {
    return world_.pool->allocate(bytes, stream_);
  }
  void deallocate(void* p, std::size_t bytes, bench::stream) noexcept {
    world_.pool->deallocate(p, bytes, stream_);
  }

  [[nodiscard]] std::size_t held() const { return world_.pool->stats().held; }
  [[nodiscard]] std::size_t peak_held() const { return world_.pool->stats().peak_held; }

  /// What the calls made so far cost on an H200, in microseconds, if granules are of 32 MiB.
  [[nodiscard]] double cost_us() const {
    const auto calls = [this](simulated_call call) {
      return static_cast<double>(world_.device.calls(call));
    };
    return 14 * calls(simulated_call::create) + 33 * calls(simulated_call::map) +
           20 * calls(simulated_call::unmap) + 35 * calls(simulated_call::destroy);
  }

 private:
  static simulated_options device() {
    simulated_options options = with_budget(device_bytes);
    options.reservation_bytes = 8192 * gibibyte;
    options.prompt = true;
    return options;
  }

  world world_{on_mapped_memory(), device()};
  simulated_stream stream_ = world_.device.create_stream();
};

struct figures {
  double live_of_device;  // the most bytes in use, as asked for
  double held_of_live;    // at the end
  double us_per_operation;
};

/// The level rises from half of `goal_bytes` in 100 steps of 2,000 operations, until a request
/// fails.
figures fill(std::size_t smallest, std::size_t largest, std::size_t goal_bytes) {
  counted_pool pool;
  bench::churn<counted_pool> blocks{pool, {}, {smallest, largest}};
  bool served = true;
  for (std::size_t level = 0; level <= 100 && served; ++level) {
    const std::size_t level_bytes = goal_bytes / 200 * (100 + level);
    const std::uint64_t first = blocks.steps();
    for (bool reached = false; served && (!reached || blocks.steps() - first < 2000);) {
      const std::size_t before = blocks.live_bytes();
      served = blocks.step(level_bytes);
      reached = reached || blocks.live_bytes() < before;
    }
  }
  const auto part = [](std::size_t bytes, std::size_t of) {
    return static_cast<double>(bytes) / static_cast<double>(of);
  };
  const figures f{part(blocks.most_live_bytes(), device_bytes),
                  part(pool.held(), blocks.live_bytes()),
                  pool.cost_us() / static_cast<double>(blocks.steps())};
  MESSAGE("live ", f.live_of_device, ", held / live ", f.held_of_live, ", ", f.us_per_operation,
          " us an operation");
  return f;
}

}  // namespace

TEST_CASE("the device is 98 % full before a request fails, sizes from 64 KiB to 1 GiB") {
  const figures f = fill(64 * kibibyte, gibibyte, device_bytes);
  CHECK(f.live_of_device >= 0.975);
  CHECK(f.us_per_operation < 10);
}

TEST_CASE("the device is 98 % full before a request fails, sizes from 1 MiB to 8 GiB") {
  const figures f = fill(mebibyte, 8 * gibibyte, device_bytes);
  CHECK(f.live_of_device >= 0.975);
  CHECK(f.us_per_operation < 50);
}

TEST_CASE("little more is held than small blocks and the rounding of their classes need") {
  const figures f = fill(4 * kibibyte, 4 * mebibyte, 16 * gibibyte);
  CHECK(f.held_of_live <= 1.12);
  CHECK(f.us_per_operation < 0.2);
}

TEST_CASE("a pool that starts with nothing holds at most 1.16 times what is in use at the peak") {
  const std::pair<std::size_t, double> columns[] = {
      {mebibyte, 0.5}, {64 * mebibyte, 6}, {gibibyte, 40}};
  for (const auto& [largest, most_us] : columns) {
    const std::size_t operations = largest == mebibyte ? 20000 : largest == gibibyte ? 2000 : 5000;
    const bench::trace recorded = bench::trace_maker{{largest, 16'000'000'000, operations}}.make();
    counted_pool pool;
    std::vector<std::pair<void*, std::size_t>> blocks(recorded.slots);
    for (const bench::operation& next : recorded.operations) {
      if (next.allocates) {
        blocks[next.slot] = {pool.allocate(next.bytes, {}), next.bytes};
      } else {
        pool.deallocate(blocks[next.slot].first, next.bytes, {});
      }
    }
    const double held = static_cast<double>(pool.peak_held()) /
                        static_cast<double>(bench::peak_live_bytes(recorded));
    const double us = pool.cost_us() / static_cast<double>(recorded.operations.size());
    MESSAGE("sizes to ", largest, ": held / peak live ", held, ", ", us, " us an operation");
    CHECK(held <= 1.16);
    CHECK(us < most_us);
  }
}

namespace {

/// Random blocks of 1 MiB to 1 GiB on four streams, each freed on the stream it was used on, while
/// at most 70 % of the device are in use; the work goes on behind the host, more or less far.
/// Returns the requests that failed.
int failures_on_four_streams(const pool_options& options, std::uint64_t seed) {
  simulated_options device = with_budget(device_bytes);
  device.reservation_bytes = 8192 * gibibyte;
  world w{options, device};
  struct live {
    void* p;
    std::size_t bytes;
    simulated_stream s;
  };
  std::vector<live> blocks;
  std::vector<simulated_stream> streams;
  for (int i = 0; i < 4; ++i) {
    streams.push_back(w.device.create_stream());
  }
  bench::log_uniform_sizes sizes{mebibyte, gibibyte};
  std::mt19937_64 random{seed};
  std::size_t in_use = 0;
  int failures = 0;
  for (int step = 0; step < 10000; ++step) {
    const std::size_t bytes = sizes.next();
    while (in_use + bytes > device_bytes / 10 * 7) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      w.free(blocks.back().p, blocks.back().bytes, blocks.back().s);
      in_use -= blocks.back().bytes;
      blocks.pop_back();
    }
    const simulated_stream s = streams[random() % streams.size()];
    try {
      blocks.push_back({w.allocate(bytes, s), bytes, s});
      in_use += bytes;
    } catch (const pagesift::out_of_memory&) {
      ++failures;
    }
    if (random() % 8 == 0) {
      w.device.run_some();
    }
  }
  for (const live& b : blocks) {
    w.free(b.p, b.bytes, b.s);
  }
  return failures;
}

}  // namespace

TEST_CASE("four streams keep 70 % of the device in use, and no request fails") {
  CHECK(failures_on_four_streams(on_mapped_memory(), 1) == 0);
}
