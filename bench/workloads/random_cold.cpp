// random_cold: the traces of `random`, each replayed once by an allocator that was just made and
// reserved nothing. One iteration is one operation of the trace; making the allocator and its end
// are not timed.
#include "../measure.hpp"
#include "../random_traces.hpp"
#include "../registration.hpp"
#include "../replay.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace bench {
namespace {

/// \pre the trace has as many operations as the state has iterations
template <typename Allocator>
void random_cold(benchmark::State& state, Allocator& allocator, const trace& recorded) {
  const own_stream stream;
  replay<Allocator> blocks{allocator, recorded, {stream.get()}};
  synchronize();
  while (state.KeepRunningBatch(static_cast<std::int64_t>(recorded.operations.size()))) {
    const clock::time_point start = clock::now();
    blocks.run();
    state.SetIterationTime(seconds_since(start));
  }
  const auto peak_live = static_cast<double>(peak_live_bytes(recorded));
  state.counters["peak_live_bytes"] = peak_live;
  const figures after = allocator.report();
  if (const auto held = after.peak_bytes ? after.peak_bytes : after.held_bytes) {
    state.counters["held_bytes"] = static_cast<double>(*held);
    state.counters["held_per_peak_live"] = static_cast<double>(*held) / peak_live;
  }
}

template <typename Allocator>
void add_random_cold(allocator_list<Allocator> one) {
  if constexpr (!Allocator::keeps_memory) {
    leave_out(one, "random_cold", "it keeps little or nothing, so random is as cold for it");
  } else if constexpr (never_grows<Allocator>) {
    leave_out(one, "random_cold", "it never grows, so it cannot begin without a reservation");
  } else {
    for (const random_argument& a : random_arguments) {
      const auto recorded = std::make_shared<const trace>(trace_maker{a.shape}.make());
      add<Allocator>(
          "random_cold", a.name,
          [recorded](benchmark::State& state, Allocator& allocator) {
            random_cold(state, allocator, *recorded);
          },
          setup{0, pagesift::no_limit})
          ->Iterations(static_cast<std::int64_t>(recorded->operations.size()))
          ->Repetitions(few_repetitions);
    }
  }
}

}  // namespace

void register_random_cold() {
  for_each_allocator(real_allocators{}, [](auto one) { add_random_cold(one); });
  leave_out(limit_allocators{}, "random_cold", "a trace has many blocks in use at once");
}

}  // namespace bench
