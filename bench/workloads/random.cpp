// random: a random trace of requests and frees on one stream, replayed as a whole; one iteration is
// one operation of the trace. Every allocator that can reserve memory reserves the same.
#include "../measure.hpp"
#include "../random_traces.hpp"
#include "../registration.hpp"
#include "../replay.hpp"

#include <cstdint>

namespace bench {
namespace {

/// Twice what is ever in use, so that a pool which was told how much there will be never grows.
constexpr setup reserved{2 * random_live_cap_bytes, pagesift::no_limit};

template <typename Allocator>
void random_trace(benchmark::State& state, Allocator& allocator, const trace_shape& shape) {
  const trace recorded = trace_maker{shape}.make();
  const own_stream stream;
  replay<Allocator> blocks{allocator, recorded, {stream.get()}};
  const auto length = static_cast<std::int64_t>(recorded.operations.size());
  time_batch(state, allocator, length, [&](std::int64_t count) {
    for (std::int64_t done = 0; done < count; done += length) {
      blocks.run();
    }
  });
}

template <typename Allocator>
void add_random(allocator_list<Allocator>) {
  for (const random_argument& a : random_arguments) {
    auto* const added = add<Allocator>(
        "random", a.name,
        [shape = a.shape](benchmark::State& state, Allocator& allocator) {
          random_trace(state, allocator, shape);
        },
        reserved);
    if (!Allocator::keeps_memory) {
      added->Repetitions(few_repetitions);
    }
  }
}

}  // namespace

void register_random() {
  for_each_allocator(real_allocators{}, [](auto one) { add_random(one); });
  leave_out(limit_allocators{}, "random", "a trace has many blocks in use at once");
}

}  // namespace bench
