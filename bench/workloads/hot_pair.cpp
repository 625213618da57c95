// hot_pair: allocate and free one block of one size, again and again, on one stream.
#include "../measure.hpp"
#include "../registration.hpp"

#include <pagesift/core/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace bench {
namespace {

constexpr std::pair<const char*, std::size_t> sizes[] = {
    {"256B", 256},
    {"4KiB", 4 * pagesift::kibibyte},
    {"1MiB", pagesift::mebibyte},
    {"100MiB", 100 * pagesift::mebibyte},
    {"800MB", 800'000'008},  // 100,000,001 doubles
};

template <typename Allocator>
void hot_pair(benchmark::State& state, Allocator& allocator, std::size_t bytes) {
  const own_stream stream;
  time_batch(state, allocator, 1, [&](std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      void* p = allocator.allocate(bytes, stream.get());
      benchmark::DoNotOptimize(p);
      allocator.deallocate(p, bytes, stream.get());
    }
  });
}

template <typename Allocator>
void add_sizes(allocator_list<Allocator>) {
  for (const auto& [argument, bytes] : sizes) {
    add<Allocator>("hot_pair", argument,
                   [bytes = bytes](benchmark::State& state, Allocator& allocator) {
                     hot_pair(state, allocator, bytes);
                   });
  }
}

}  // namespace

void register_hot_pair() {
  for_each_allocator(real_allocators{}, [](auto one) { add_sizes(one); });
  for_each_allocator(limit_allocators{}, [](auto one) { add_sizes(one); });
}

}  // namespace bench
