// thrust_square: each call squares an array into a fresh one and drops it.
#include "../arrays.hpp"
#include "../measure.hpp"
#include "../policies.hpp"
#include "../registration.hpp"

#include <thrust/device_ptr.h>
#include <thrust/fill.h>
#include <thrust/functional.h>
#include <thrust/transform.h>

#include <cstddef>
#include <string>

namespace bench {
namespace {

/// `policy_of_allocator(allocator)` says how Thrust is called.
template <typename T, typename Allocator, typename Policy>
void thrust_square(benchmark::State& state, Allocator& allocator, std::size_t count,
                   Policy policy_of_allocator) {
  const machine_array<T> in{count};
  thrust::fill(thrust::device, in.begin(), in.end(), T{3});
  const std::size_t bytes = count * sizeof(T);
  const auto policy = policy_of_allocator(allocator);
  time_rounds(
      state, allocator, [] {},
      [&] {
        void* const out = allocator.allocate(bytes, stream{});
        thrust::transform(policy, in.begin(), in.end(),
                          thrust::device_pointer_cast(static_cast<T*>(out)), thrust::square<T>{});
        allocator.deallocate(out, bytes, stream{});
      });
}

constexpr auto waiting = [](auto& allocator) { return policy_of(allocator); };

template <typename T, typename Allocator, typename Policy>
void add_count(const char* type, std::size_t count, Policy policy_of_allocator) {
  add<Allocator>("thrust_square", std::string{type} + '_' + std::to_string(count),
                 [=](benchmark::State& state, Allocator& allocator) {
                   thrust_square<T>(state, allocator, count, policy_of_allocator);
                 });
}

template <typename Allocator>
void add_counts(allocator_list<Allocator>) {
  for (const std::size_t count : {1'000, 10'000'000, 100'000'001}) {
    add_count<float, Allocator>("float", count, waiting);
  }
  add_count<double, Allocator>("double", 100'000'001, waiting);
#ifdef PAGESIFT_DEVICE_IS_CUDA
  add_count<float, Allocator>("nosync_float", 1'000,
                              [](auto& allocator) { return nosync_policy_of(allocator); });
#else
  add_count<double, Allocator>("double", 50'000'000, waiting);
#endif
}

}  // namespace

void register_thrust_square() {
  for_each_allocator(real_allocators{}, [](auto one) { add_counts(one); });
  for_each_allocator(limit_allocators{}, [](auto one) { add_counts(one); });
}

}  // namespace bench
