// thrust_reduce: the sum of an array.
#include "../arrays.hpp"
#include "../measure.hpp"
#include "../policies.hpp"
#include "../thrust_counts.hpp"

#include <thrust/reduce.h>

#include <cstddef>

namespace bench {
namespace {

constexpr auto thrust_reduce = [](benchmark::State& state, auto& allocator, std::size_t count) {
  const machine_array<int> numbers = make_numbers(count);
  const auto policy = policy_of(allocator);
  time_rounds(
      state, allocator, [] {},
      [&] {
        unsigned sum = thrust::reduce(policy, numbers.begin(), numbers.end(), 0U);
        benchmark::DoNotOptimize(sum);
      });
};

}  // namespace

void register_thrust_reduce() {
  add_thrust_counts(real_allocators{}, "thrust_reduce", thrust_reduce);
  add_thrust_counts(limit_allocators{}, "thrust_reduce", thrust_reduce);
}

}  // namespace bench
