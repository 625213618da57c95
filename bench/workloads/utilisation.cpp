// utilisation: how full an allocator keeps the device. Blocks of random sizes come and go while
// the bytes in use rise from half of the goal in steps of half a percent, until the first request
// that fails. The goal is all that was free before the allocator was made; for the smallest sizes
// it is a fixed amount, which every allocator reaches, and what counts is how much is held for it.
// The time is that of one request or free.
#include "../churn.hpp"
#include "../measure.hpp"
#include "../registration.hpp"

#include <pagesift/core/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace bench {
namespace {

using pagesift::gibibyte;
using pagesift::kibibyte;
using pagesift::mebibyte;

struct size_range {
  const char* name;
  std::size_t smallest_bytes;
  std::size_t largest_bytes;
  bool until_full;
};

constexpr size_range size_ranges[] = {
    {"4KiB_4MiB", 4 * kibibyte, 4 * mebibyte, false},
    {"64KiB_1GiB", 64 * kibibyte, gibibyte, true},
    {"1MiB_8GiB", mebibyte, 8 * gibibyte, true},
};

constexpr int operations_per_level = 2'000;
constexpr int levels = 100;
constexpr double time_cap_seconds = 12;  // for those that ask the device each time

#ifdef PAGESIFT_DEVICE_IS_CUDA
constexpr std::size_t fixed_goal_bytes = 16 * gibibyte;

std::size_t capacity() { return free_machine_bytes(); }
/// The device is the limit, which an allocator that cannot grow takes whole.
template <typename Allocator>
setup wanted() {
  return {never_grows<Allocator> ? capacity() : 0, pagesift::no_limit};
}

template <typename Allocator>
bool holds_too_much(const Allocator&) {
  return false;
}

template <typename Allocator>
std::optional<std::uint64_t> held_bytes(const Allocator&, std::size_t capacity_bytes) {
  return capacity_bytes - free_machine_bytes();
}
#else
constexpr std::size_t fixed_goal_bytes = 4 * gibibyte;

/// Addresses: nothing writes to the blocks, and the host has more of them than it has memory.
std::size_t capacity() { return 16 * gibibyte; }
template <typename Allocator>
setup wanted() {
  return {0, capacity()};
}

/// Whether an allocator that cannot be given a limit has passed it.
template <typename Allocator>
bool holds_too_much(const Allocator& allocator) {
  if constexpr (std::is_constructible_v<Allocator, const setup&>) {
    return false;
  } else {
    return allocator.report().held_bytes.value_or(0) > capacity();
  }
}

template <typename Allocator>
std::optional<std::uint64_t> held_bytes(const Allocator& allocator, std::size_t) {
  return allocator.report().held_bytes;
}
#endif

enum class outcome { reached_goal, request_failed, out_of_time };

/// Drives `blocks` up to `goal_bytes`.
template <typename Allocator>
outcome fill(churn<Allocator>& blocks, const Allocator& allocator, std::size_t goal_bytes) {
  const clock::time_point start = clock::now();
  for (int level = 0; level <= levels; ++level) {
    const auto level_bytes =
        static_cast<std::size_t>(static_cast<double>(goal_bytes) * (0.5 + 0.5 * level / levels));
    const std::uint64_t first = blocks.steps();
    bool reached = false;
    while (!reached || blocks.steps() - first < operations_per_level) {
      const std::size_t before = blocks.live_bytes();
      if (!blocks.step(level_bytes) || holds_too_much(allocator)) {
        return outcome::request_failed;
      }
      reached = reached || blocks.live_bytes() < before;
      if (blocks.steps() % 16 == 0 && seconds_since(start) > time_cap_seconds) {
        return outcome::out_of_time;
      }
    }
  }
  return outcome::reached_goal;
}

/// One run in an iteration of its own, whose time is that of one operation.
template <typename Allocator>
void utilisation(benchmark::State& state, const size_range& a) {
  const std::size_t capacity_bytes = capacity();
  Allocator allocator = make_allocator<Allocator>(wanted<Allocator>());
  const own_stream stream;
  churn<Allocator> blocks{allocator, stream.get(), {a.smallest_bytes, a.largest_bytes}};
  outcome end = outcome::reached_goal;
  for ([[maybe_unused]] auto _ : state) {
    const clock::time_point start = clock::now();
    end = fill(blocks, allocator, a.until_full ? capacity_bytes : fixed_goal_bytes);
    state.SetIterationTime(seconds_since(start) / static_cast<double>(blocks.steps()));
  }
  const auto live_bytes = static_cast<double>(blocks.live_bytes());
  if (a.until_full) {
    state.counters["utilisation"] =
        static_cast<double>(blocks.most_live_bytes()) / static_cast<double>(capacity_bytes);
  }
  if (const auto held = held_bytes(allocator, capacity_bytes); held && live_bytes != 0) {
    state.counters["held_bytes"] = static_cast<double>(*held);
    state.counters["held_per_live"] = static_cast<double>(*held) / live_bytes;
  }
  state.counters["request_failed"] = end == outcome::request_failed ? 1 : 0;
  state.counters["out_of_time"] = end == outcome::out_of_time ? 1 : 0;
}

template <typename Allocator>
void add_utilisation(allocator_list<Allocator>) {
  for (const size_range& a : size_ranges) {
    add_unmade("utilisation", Allocator::name, a.name,
               [a](benchmark::State& state) { utilisation<Allocator>(state, a); })
        ->Iterations(1)
        ->Repetitions(Allocator::keeps_memory ? few_repetitions : 1);
  }
}

}  // namespace

void register_utilisation() {
  for_each_allocator(real_allocators{}, [](auto one) { add_utilisation(one); });
  leave_out(limit_allocators{}, "utilisation", "many blocks are in use at once");
}

}  // namespace bench
