// replay: a trace that a program left in a file, replayed as a whole in the order of its lines by
// one thread. One iteration is one operation of the trace.
#include "../measure.hpp"
#include "../registration.hpp"
#include "../replay.hpp"
#include "replay.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace bench {
namespace {

template <typename Allocator>
void replay_trace(benchmark::State& state, Allocator& allocator, const trace& recorded) {
  std::deque<own_stream> own;
  std::vector<stream> streams{stream{}};
  while (streams.size() < recorded.streams) {
    streams.push_back(own.emplace_back().get());
  }
  replay<Allocator> blocks{allocator, recorded, streams};
  const auto length = static_cast<std::int64_t>(recorded.operations.size());
  time_batch(state, allocator, length, [&](std::int64_t count) {
    for (std::int64_t done = 0; done < count; done += length) {
      blocks.run();
    }
  });
  state.counters["trace_operations"] = static_cast<double>(length);
}

template <typename Allocator>
void add_replay(allocator_list<Allocator>, const std::string& argument,
                const std::shared_ptr<const trace>& recorded) {
  add<Allocator>("replay", argument, [recorded](benchmark::State& state, Allocator& allocator) {
    replay_trace(state, allocator, *recorded);
  });
}

}  // namespace

void register_replay(const std::string& argument, const trace& recorded) {
  const auto shared = std::make_shared<const trace>(recorded);
  for_each_allocator(real_allocators{}, [&](auto one) { add_replay(one, argument, shared); });
  leave_out(limit_allocators{}, "replay", "a trace has many blocks in use at once");
}

}  // namespace bench
