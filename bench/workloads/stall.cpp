// stall: how long an allocator that grows and gives memory back holds up others. One thread submits
// pieces of work of 10 us to its stream and waits for each; another takes blocks of 1 to 256 MiB
// until a goal is in use, frees them all and trims, again and again. The counters are the longest
// gap between two completions of the first thread and the one that 99.9 % do not exceed; the time
// is that of one cycle of the second. With fixed_block nothing is taken: it shows the machine's
// own.
#include "../churn.hpp"
#include "../gap_watch.hpp"
#include "../measure.hpp"
#include "../registration.hpp"

#include <pagesift/core/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace bench {
namespace {

using pagesift::gibibyte;
using pagesift::mebibyte;

constexpr std::int64_t cycles = 10;

#ifdef PAGESIFT_DEVICE_IS_CUDA
constexpr std::size_t grown_bytes = 8 * gibibyte;
constexpr const char* argument = "8GiB";
#else
constexpr std::size_t grown_bytes = 2 * gibibyte;  // addresses: nothing writes to the blocks
constexpr const char* argument = "2GiB";
#endif

/// Takes blocks until `grown_bytes` are in use, frees them and trims.
template <typename Allocator>
void grow_and_trim(Allocator& allocator, stream s, log_uniform_sizes& sizes) {
  std::vector<std::pair<void*, std::size_t>> blocks;
  const auto free_all = [&] {
    for (const auto& [p, bytes] : blocks) {
      allocator.deallocate(p, bytes, s);
    }
  };
  try {
    for (std::size_t live_bytes = 0; live_bytes < grown_bytes;) {
      const std::size_t bytes = sizes.next();
      blocks.emplace_back(nullptr, 0);  // before the request, so that no block is ever lost
      blocks.back() = {allocator.allocate(bytes, s), bytes};
      live_bytes += bytes;
    }
  } catch (...) {
    blocks.pop_back();
    free_all();
    throw;
  }
  free_all();
  allocator.trim();
}

template <typename Allocator>
void stall(benchmark::State& state, Allocator& allocator) {
  const own_stream stream;
  log_uniform_sizes sizes{mebibyte, 256 * mebibyte};
  gap_watch watch;
  for ([[maybe_unused]] auto _ : state) {
    const clock::time_point start = clock::now();
    grow_and_trim(allocator, stream.get(), sizes);
    state.SetIterationTime(seconds_since(start));
  }
  watch.finish();
  state.counters["worst_gap_us"] = 1e6 * watch.quantile(1);
  state.counters["p999_gap_us"] = 1e6 * watch.quantile(0.999);
  state.counters["gaps"] = static_cast<double>(watch.size());
}

template <typename Allocator>
void add_one(allocator_list<Allocator>) {
  const setup wanted{never_grows<Allocator> ? 2 * grown_bytes : 0, pagesift::no_limit};
  add<Allocator>("stall", argument, stall<Allocator>, wanted)
      ->Iterations(cycles)
      ->Repetitions(few_repetitions);
}

}  // namespace

void register_stall() {
  for_each_allocator(real_allocators{}, [](auto one) { add_one(one); });
  for_each_allocator(limit_allocators{}, [](auto one) { add_one(one); });
}

}  // namespace bench
