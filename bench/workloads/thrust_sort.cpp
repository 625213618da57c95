// thrust_sort: sorts an array that is put back in disorder before each call, untimed.
#include "../arrays.hpp"
#include "../measure.hpp"
#include "../policies.hpp"
#include "../thrust_counts.hpp"

#include <thrust/copy.h>
#include <thrust/sort.h>

#include <cstddef>

namespace bench {
namespace {

constexpr auto thrust_sort = [](benchmark::State& state, auto& allocator, std::size_t count) {
  const machine_array<int> disorder = make_numbers(count);
  const machine_array<int> numbers{count};
  const auto policy = policy_of(allocator);
  time_rounds(
      state, allocator,
      [&] { thrust::copy(thrust::device, disorder.begin(), disorder.end(), numbers.begin()); },
      [&] { thrust::sort(policy, numbers.begin(), numbers.end()); });
};

}  // namespace

void register_thrust_sort() {
  add_thrust_counts(real_allocators{}, "thrust_sort", thrust_sort);
#ifdef PAGESIFT_DEVICE_IS_CUDA
  add_thrust_counts(limit_allocators{}, "thrust_sort", thrust_sort);
#else
  leave_out(limit_allocators{}, "thrust_sort", "several threads ask for temporary storage at once");
#endif
}

}  // namespace bench
