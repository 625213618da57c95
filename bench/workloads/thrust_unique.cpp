// thrust_unique: drops the repeats from an array that has every number twice; the repeats are put
// back before each call, untimed.
#include "../arrays.hpp"
#include "../measure.hpp"
#include "../policies.hpp"
#include "../thrust_counts.hpp"

#include <thrust/copy.h>
#include <thrust/unique.h>

#include <cstddef>

namespace bench {
namespace {

constexpr auto thrust_unique = [](benchmark::State& state, auto& allocator, std::size_t count) {
  const machine_array<int> twice = make_numbers(count, 2);
  const machine_array<int> numbers{count};
  const auto policy = policy_of(allocator);
  time_rounds(
      state, allocator,
      [&] { thrust::copy(thrust::device, twice.begin(), twice.end(), numbers.begin()); },
      [&] {
        auto end = thrust::unique(policy, numbers.begin(), numbers.end());
        benchmark::DoNotOptimize(end);
      });
};

}  // namespace

void register_thrust_unique() {
  add_thrust_counts(real_allocators{}, "thrust_unique", thrust_unique);
#ifdef PAGESIFT_DEVICE_IS_CUDA
  add_thrust_counts(limit_allocators{}, "thrust_unique", thrust_unique);
#else
  leave_out(limit_allocators{}, "thrust_unique", "a call has several temporary arrays at once");
#endif
}

}  // namespace bench
