// hot_pair: allocate and free one block of one size, again and again, on one stream.
#include "../measure.hpp"
#include "../registration.hpp"

#include <pagesift/core/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace bench {
namespace {

constexpr std::pair<const char*, std::size_t> hot_pair_sizes[] = {
    {"256B", 256},
    {"4KiB", 4 * pagesift::kibibyte},
    {"1MiB", pagesift::mebibyte},
    {"100MiB", 100 * pagesift::mebibyte},
    {"800MB", 800'000'008},  // 100,000,001 doubles
};

/// The two calls on one stream, as a user of the allocator would make them there.
template <typename Allocator>
class calls_on {
 public:
  calls_on(Allocator& allocator, stream s) : allocator_{allocator}, stream_{s} {}

  [[nodiscard]] void* allocate(std::size_t bytes) { return allocator_.allocate(bytes, stream_); }
  void deallocate(void* p, std::size_t bytes) { allocator_.deallocate(p, bytes, stream_); }

 private:
  Allocator& allocator_;
  stream stream_;
};

template <typename Allocator>
[[nodiscard]] auto on_stream(Allocator& allocator, stream s) {
  if constexpr (std::is_base_of_v<pagesift_bound, Allocator>) {
    return allocator.on(s);
  } else {
    return calls_on<Allocator>{allocator, s};
  }
}

template <typename Allocator>
void hot_pair(benchmark::State& state, Allocator& allocator, std::size_t bytes) {
  const own_stream own;
  auto calls = on_stream(allocator, own.get());
  time_batch(state, allocator, 1, [&](std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      void* p = calls.allocate(bytes);
      benchmark::DoNotOptimize(p);
      calls.deallocate(p, bytes);
    }
  });
}

template <typename Allocator>
void add_hot_pair(allocator_list<Allocator>, std::size_t most_bytes = ~std::size_t{0}) {
  for (const auto& [argument, bytes] : hot_pair_sizes) {
    if (bytes > most_bytes) {
      continue;
    }
    add<Allocator>("hot_pair", argument,
                   [bytes = bytes](benchmark::State& state, Allocator& allocator) {
                     hot_pair(state, allocator, bytes);
                   });
  }
}

}  // namespace

void register_hot_pair() {
  for_each_allocator(real_allocators{}, [](auto one) { add_hot_pair(one); });
  for_each_allocator(bound_allocators{}, [](auto one) { add_hot_pair(one); });
  for_each_allocator(checked_allocators{}, [](auto one) { add_hot_pair(one, pagesift::mebibyte); });
  for_each_allocator(limit_allocators{}, [](auto one) { add_hot_pair(one); });
}

}  // namespace bench
