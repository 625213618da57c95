// cross_stream: memory that always goes to another stream. Each block is taken on a consumer's
// stream, used by a kernel of 10 us there and by one on a producer's stream after it, and freed on
// the producer's stream, so that no block ever comes back where it was freed. One iteration is one
// such block, and the time is that of its two calls of the allocator alone.
#include "../measure.hpp"
#include "../registration.hpp"
#include "../short_work.hpp"

#include <pagesift/core/bytes.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace bench {

#ifdef PAGESIFT_DEVICE_IS_CUDA
namespace {

constexpr std::pair<const char*, std::size_t> cross_stream_sizes[] = {
    {"4KiB", 4 * pagesift::kibibyte},
    {"1MiB", pagesift::mebibyte},
    {"64MiB", 64 * pagesift::mebibyte},
};

constexpr std::int64_t blocks = 2'048;

/// Those that are told on which stream a block is freed, or that wait for all of them.
using told_of_both_streams =
    joined<allocator_list<pagesift_pool, plain, cuda_malloc_async>, rmm_allocators>::type;

/// The event that orders the producer's kernel after the consumer's.
class own_event {
 public:
  own_event() { check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  own_event(const own_event&) = delete;
  own_event& operator=(const own_event&) = delete;
  ~own_event() { (void)cudaEventDestroy(event_); }

  void order(stream first, stream second) {
    check_cuda(cudaEventRecord(event_, first));
    check_cuda(cudaStreamWaitEvent(second, event_, 0));
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Blocks that go from a consumer's stream to a producer's. At most `depth` are on their way at
/// once, so that the queue of submitted work never fills.
template <typename Allocator>
class crossing {
 public:
  crossing(Allocator& allocator, std::size_t bytes) : allocator_{allocator}, bytes_{bytes} {}

  /// \returns seconds spent in the allocator's calls
  double run(std::int64_t count) {
    clock::duration spent{0};
    for (std::int64_t i = 0; i < count; ++i) {
      spent += one_block();
      if ((i + 1) % depth == 0) {
        wait_for(producer_.get());
      }
    }
    wait_for(producer_.get());
    return std::chrono::duration<double>(spent).count();
  }

 private:
  static constexpr std::int64_t depth = 16;

  clock::duration one_block() {
    const clock::time_point before_request = clock::now();
    void* const p = allocator_.allocate(bytes_, consumer_.get());
    const clock::time_point after_request = clock::now();
    submit_short_work(consumer_.get());
    event_.order(consumer_.get(), producer_.get());
    submit_short_work(producer_.get());
    const clock::time_point before_free = clock::now();
    allocator_.deallocate(p, bytes_, producer_.get());
    return (after_request - before_request) + (clock::now() - before_free);
  }

  Allocator& allocator_;
  std::size_t bytes_;
  own_stream consumer_;
  own_stream producer_;
  own_event event_;
};

template <typename Allocator>
void cross_stream(benchmark::State& state, Allocator& allocator, std::size_t bytes) {
  crossing<Allocator> work{allocator, bytes};
  (void)work.run(blocks / 8);
  synchronize();
  const steady_state steady{allocator};
  const clock::time_point start = clock::now();
  while (state.KeepRunningBatch(blocks)) {
    state.SetIterationTime(work.run(blocks));
  }
  state.counters["whole_ns"] =
      benchmark::Counter(1e9 * seconds_since(start), benchmark::Counter::kAvgIterations);
  steady.report(state);
}

template <typename Allocator>
void add_cross_stream(allocator_list<Allocator>) {
  for (const auto& [argument, bytes] : cross_stream_sizes) {
    add<Allocator>("cross_stream", argument,
                   [bytes = bytes](benchmark::State& state, Allocator& allocator) {
                     cross_stream(state, allocator, bytes);
                   })
        ->Iterations(blocks);
  }
}

}  // namespace

void register_cross_stream() {
  for_each_allocator(told_of_both_streams{}, [](auto one) { add_cross_stream(one); });
  for_each_allocator(limit_allocators{}, [](auto one) { add_cross_stream(one); });
  leave_out(allocator_list<cub_caching, cub_caching_tuned, thrust_pool>{}, "cross_stream",
            "its free takes no stream, so a block would come back while it is in use");
}

#else

void register_cross_stream() {
  leave_out(real_allocators{}, "cross_stream", "the host has one stream");
  leave_out(limit_allocators{}, "cross_stream", "the host has one stream");
}

#endif

}  // namespace bench
