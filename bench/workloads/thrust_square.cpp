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

template <typename T, typename Allocator>
void thrust_square(benchmark::State& state, Allocator& allocator, std::size_t count) {
  const machine_array<T> in{count};
  thrust::fill(thrust::device, in.begin(), in.end(), T{3});
  const std::size_t bytes = count * sizeof(T);
  const auto policy = policy_of(allocator);
  time_rounds(
      state, allocator, [] {},
      [&] {
        void* const out = allocator.allocate(bytes, stream{});
        thrust::transform(policy, in.begin(), in.end(),
                          thrust::device_pointer_cast(static_cast<T*>(out)), thrust::square<T>{});
        allocator.deallocate(out, bytes, stream{});
      });
}

template <typename T, typename Allocator>
void add_count(const char* type, std::size_t count) {
  add<Allocator>("thrust_square", std::string{type} + '_' + std::to_string(count),
                 [count](benchmark::State& state, Allocator& allocator) {
                   thrust_square<T>(state, allocator, count);
                 });
}

template <typename Allocator>
void add_counts(allocator_list<Allocator>) {
  for (const std::size_t count : {1'000, 10'000'000, 100'000'001}) {
    add_count<float, Allocator>("float", count);
  }
  for (const std::size_t count : {50'000'000, 100'000'001}) {
    add_count<double, Allocator>("double", count);
  }
}

}  // namespace

void register_thrust_square() {
  for_each_allocator(real_allocators{}, [](auto one) { add_counts(one); });
  for_each_allocator(limit_allocators{}, [](auto one) { add_counts(one); });
}

}  // namespace bench
