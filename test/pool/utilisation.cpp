// How full the device can be kept while blocks of all sizes come and go, over addresses alone.
#include "world.hpp"

#include <cmath>
#include <random>
#include <vector>

namespace {

constexpr std::size_t device_bytes = 139 * gibibyte;

struct figures {
  double live;      // bytes in use as asked for, of the device, when a request first failed
  double demanded;  // the same with that request
  std::uint64_t moves;
  std::size_t operations;
};

/// 55 of 100 operations are requests, of sizes log-uniform between two powers of two, the rest
/// frees of any block: until a request fails.
class churn {
 public:
  churn(double least_log2, double most_log2, std::uint64_t seed)
      : random_{seed}, least_{least_log2}, most_{most_log2} {}

  figures run() {
    std::size_t wanted = 0;
    bool served = true;
    while (served) {
      ++operations_;
      if (blocks_.empty() || share() < 0.55) {
        wanted = static_cast<std::size_t>(std::exp2(least_ + (most_ - least_) * share()));
        served = request(wanted);
      } else {
        free_any();
      }
    }
    const auto part = [](std::size_t bytes) {
      return static_cast<double>(bytes) / static_cast<double>(device_bytes);
    };
    const std::uint64_t moves =
        world_.device.calls(simulated_call::map) - world_.device.calls(simulated_call::create);
    const figures f{part(live_), part(live_ + wanted), moves, operations_};
    while (!blocks_.empty()) {
      free_any();
    }
    return f;
  }

 private:
  struct live_block {
    void* p;
    std::size_t bytes;
  };

  static simulated_options device() {
    simulated_options options = with_budget(device_bytes);
    options.reservation_bytes = 300 * gibibyte;
    return options;
  }

  double share() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  bool request(std::size_t bytes) {
    try {
      blocks_.push_back({world_.pool->allocate(bytes, stream_), bytes});
    } catch (const pagesift::out_of_memory&) {
      return false;
    }
    live_ += bytes;
    return true;
  }

  void free_any() {
    std::swap(blocks_[static_cast<std::size_t>(random_() % blocks_.size())], blocks_.back());
    world_.pool->deallocate(blocks_.back().p, blocks_.back().bytes, stream_);
    live_ -= blocks_.back().bytes;
    blocks_.pop_back();
  }

  world world_{on_mapped_memory(), device()};
  simulated_stream stream_ = world_.device.create_stream();
  std::mt19937_64 random_;
  double least_;
  double most_;
  std::vector<live_block> blocks_;
  std::size_t live_ = 0;
  std::size_t operations_ = 0;
};

}  // namespace

TEST_CASE("the device is 98 % full before a request fails, sizes from 64 KiB to 1 GiB") {
  const figures f = churn{16, 30, 2}.run();
  MESSAGE("live ", f.live, ", demanded ", f.demanded, ", moves ", f.moves, " in ", f.operations);
  CHECK(f.live >= 0.97);
  CHECK(f.demanded >= 0.98);
  CHECK(f.moves < f.operations / 8);
}

TEST_CASE("the device is 98 % full before a request fails, sizes from 1 MiB to 8 GiB") {
  const figures f = churn{20, 33, 2}.run();
  MESSAGE("live ", f.live, ", demanded ", f.demanded, ", moves ", f.moves, " in ", f.operations);
  CHECK(f.live >= 0.98);
  CHECK(f.demanded >= 0.99);
  CHECK(f.moves < f.operations);
}
