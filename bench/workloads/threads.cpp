// threads_own_stream, threads_shared_stream: several threads allocate and free at once, each with
// eight blocks of random sizes up to 1 MiB in use. One iteration is one pair of calls of one
// thread; the time is that of all threads together, so perfect scaling divides it by the threads.
#include "../measure.hpp"
#include "../registration.hpp"
#include "../team.hpp"

#include <pagesift/core/bytes.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>

namespace bench {
namespace {

constexpr unsigned thread_counts[] = {1, 4, 16};

/// The blocks of one thread. At first it takes many at once, more than it ever has again, so that a
/// pool that keeps memory has enough for all threads before the clock runs; then it keeps eight.
template <typename Allocator>
class window {
 public:
  window(Allocator& allocator, stream s, unsigned seed) : allocator_{allocator}, stream_{s} {
    std::mt19937_64 random{seed};
    for (block& b : ring_) {
      b.bytes = 1 + static_cast<std::size_t>(random() % pagesift::mebibyte);
    }
    while (newest_ - oldest_ < ring_.size()) {
      allocate_newest();
    }
    while (newest_ - oldest_ > blocks_in_use) {
      free_oldest();
    }
  }
  window(const window&) = delete;
  window& operator=(const window&) = delete;
  ~window() {
    while (oldest_ != newest_) {
      free_oldest();
    }
  }

  void step(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      free_oldest();
      allocate_newest();
    }
  }

  void warm_up() { step(Allocator::warm_up_rounds * static_cast<std::int64_t>(ring_.size())); }

 private:
  static constexpr std::size_t blocks_in_use = 8;

  struct block {
    void* p = nullptr;
    std::size_t bytes = 0;
  };

  void allocate_newest() {
    block& b = ring_[newest_ % ring_.size()];
    b.p = allocator_.allocate(b.bytes, stream_);
    ++newest_;
  }
  void free_oldest() {
    const block& b = ring_[oldest_ % ring_.size()];
    allocator_.deallocate(b.p, b.bytes, stream_);
    ++oldest_;
  }

  Allocator& allocator_;
  stream stream_;
  std::array<block, 64> ring_{};
  std::size_t oldest_ = 0;
  std::size_t newest_ = 0;
};

/// What one thread does, on the shared stream or on its own, which outlives its blocks.
template <typename Allocator>
class member {
 public:
  member(Allocator& allocator, std::optional<stream> shared, unsigned index, std::int64_t steps)
      : blocks_{allocator, shared.value_or(own_.get()), index}, steps_{steps} {
    blocks_.warm_up();
  }

  void work() { blocks_.step(steps_); }

 private:
  own_stream own_;
  window<Allocator> blocks_;
  std::int64_t steps_;
};

template <typename Allocator>
void run_threads(benchmark::State& state, Allocator& allocator, unsigned threads,
                 std::optional<stream> shared) {
  const std::int64_t each = (state.max_iterations + threads - 1) / threads;
  const auto make = [&](unsigned index) {
    return member<Allocator>{allocator, shared, index, each};
  };
  std::optional<steady_state<Allocator>> steady;
  while (state.KeepRunningBatch(each * threads)) {
    state.SetIterationTime(team{}.run(threads, make, [&] { steady.emplace(allocator); }));
  }
  if (steady) {
    steady->report(state);
  }
}

template <typename Allocator>
void add_thread_counts(allocator_list<Allocator>) {
  for (const unsigned threads : thread_counts) {
    const std::string count = std::to_string(threads);
    add<Allocator>("threads_own_stream", count, [threads](auto& state, Allocator& allocator) {
      run_threads(state, allocator, threads, std::nullopt);
    });
    add<Allocator>("threads_shared_stream", "default_" + count,
                   [threads](auto& state, Allocator& allocator) {
                     run_threads(state, allocator, threads, stream{});
                   });
    add<Allocator>("threads_shared_stream", "created_" + count,
                   [threads](auto& state, Allocator& allocator) {
                     const own_stream created;
                     run_threads(state, allocator, threads, created.get());
                   });
  }
}

}  // namespace

void register_threads() {
  for_each_allocator(shared_allocators{}, [](auto one) { add_thread_counts(one); });
  for (const char* const workload : {"threads_own_stream", "threads_shared_stream"}) {
    leave_out(unshared_allocators{}, workload, "it breaks when several threads fill its cache");
  }
  for_each_allocator(limit_allocators{}, [](auto one) { add_thread_counts(one); });
}

}  // namespace bench
