// cub_reduce: the sum of an array by CUB's two-phase call: ask for the size, allocate, run, wait,
// free.
#include "../arrays.hpp"
#include "../measure.hpp"
#include "../thrust_counts.hpp"

#include <cub/device/device_reduce.cuh>
#include <cuda_runtime.h>

#include <cstddef>
#include <stdexcept>

namespace bench {
namespace {

void check(cudaError_t error) {
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    throw std::runtime_error{cudaGetErrorString(error)};
  }
}

/// One call, with temporary storage from `allocator`.
template <typename Allocator>
void sum(Allocator& allocator, const int* numbers, unsigned* result, std::size_t count) {
  const auto reduce = [&](void* storage, std::size_t& bytes) {
    check(
        cub::DeviceReduce::Reduce(storage, bytes, numbers, result, count, cuda::std::plus<>{}, 0U));
  };
  std::size_t bytes = 0;
  reduce(nullptr, bytes);
  void* const storage = allocator.allocate(bytes, stream{});
  try {
    reduce(storage, bytes);
    check(cudaStreamSynchronize(stream{}));
  } catch (...) {
    allocator.deallocate(storage, bytes, stream{});
    throw;
  }
  allocator.deallocate(storage, bytes, stream{});
}

constexpr auto cub_reduce = [](benchmark::State& state, auto& allocator, std::size_t count) {
  const machine_array<int> numbers = make_numbers(count);
  const machine_array<unsigned> result{1};
  time_rounds(
      state, allocator, [] {}, [&] { sum(allocator, numbers.data(), result.data(), count); });
};

}  // namespace

void register_cub_reduce() {
  add_thrust_counts(real_allocators{}, "cub_reduce", cub_reduce);
  add_thrust_counts(limit_allocators{}, "cub_reduce", cub_reduce);
}

}  // namespace bench
