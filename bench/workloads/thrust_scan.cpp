// thrust_scan: the running sums of an array, into an array that stays.
#include "../arrays.hpp"
#include "../measure.hpp"
#include "../policies.hpp"
#include "../thrust_counts.hpp"

#include <thrust/scan.h>

#include <cstddef>

namespace bench {
namespace {

constexpr auto thrust_scan = [](benchmark::State& state, auto& allocator, std::size_t count) {
  const machine_array<int> numbers = make_numbers(count);
  const machine_array<unsigned> sums{count};
  const auto policy = policy_of(allocator);
  time_rounds(
      state, allocator, [] {},
      [&] { thrust::inclusive_scan(policy, numbers.begin(), numbers.end(), sums.begin()); });
};

}  // namespace

void register_thrust_scan() {
  add_thrust_counts(real_allocators{}, "thrust_scan", thrust_scan);
  add_thrust_counts(limit_allocators{}, "thrust_scan", thrust_scan);
}

}  // namespace bench
