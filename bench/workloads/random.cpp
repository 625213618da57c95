// random: a random trace of requests and frees on one stream, replayed as a whole; one iteration is
// one operation of the trace.
#include "../measure.hpp"
#include "../registration.hpp"
#include "../trace.hpp"

#include <pagesift/core/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {
namespace {

using pagesift::gibibyte;
using pagesift::mebibyte;

#ifdef PAGESIFT_DEVICE_IS_CUDA
constexpr std::size_t live_cap_bytes = 16'000'000'000;
#else
constexpr std::size_t live_cap_bytes = 4'000'000'000;  // addresses: nothing writes to the blocks
#endif

struct argument {
  const char* name;
  trace_shape shape;
};

// Long enough to reach the cap, but for the smallest sizes; short enough for cudaMalloc.
constexpr argument arguments[] = {
    {"1MiB", {mebibyte, live_cap_bytes, 20'000}},
    {"64MiB", {64 * mebibyte, live_cap_bytes, 5'000}},
    {"1GiB", {gibibyte, live_cap_bytes, 2'000}},
};

/// The blocks a replay has in use; gives them back when a shortage ends the replay half-way.
template <typename Allocator>
class replay {
 public:
  replay(Allocator& allocator, const trace& recorded, stream s)
      : allocator_{allocator}, trace_{recorded}, stream_{s}, blocks_(recorded.slots) {}
  replay(const replay&) = delete;
  replay& operator=(const replay&) = delete;
  ~replay() {
    for (const block& left : blocks_) {
      if (left.p != nullptr) {
        allocator_.deallocate(left.p, left.bytes, stream_);
      }
    }
  }

  void run() {
    for (const operation& next : trace_.operations) {
      block& b = blocks_[next.slot];
      if (next.allocates) {
        b = {allocator_.allocate(next.bytes, stream_), next.bytes};
      } else {
        allocator_.deallocate(b.p, b.bytes, stream_);
        b.p = nullptr;
      }
    }
  }

 private:
  struct block {
    void* p = nullptr;
    std::size_t bytes = 0;
  };

  Allocator& allocator_;
  const trace& trace_;
  stream stream_;
  std::vector<block> blocks_;
};

template <typename Allocator>
void random_trace(benchmark::State& state, Allocator& allocator, const trace_shape& shape) {
  const trace recorded = trace_maker{shape}.make();
  const own_stream stream;
  replay<Allocator> blocks{allocator, recorded, stream.get()};
  const auto length = static_cast<std::int64_t>(recorded.operations.size());
  time_batch(state, allocator, length, [&](std::int64_t count) {
    for (std::int64_t done = 0; done < count; done += length) {
      blocks.run();
    }
  });
}

template <typename Allocator>
void add_arguments(allocator_list<Allocator>) {
  for (const argument& a : arguments) {
    add<Allocator>("random", a.name,
                   [shape = a.shape](benchmark::State& state, Allocator& allocator) {
                     random_trace(state, allocator, shape);
                   });
  }
}

}  // namespace

void register_random() {
  for_each_allocator(real_allocators{}, [](auto one) { add_arguments(one); });
  leave_out(limit_allocators{}, "random", "a trace has many blocks in use at once");
}

}  // namespace bench
