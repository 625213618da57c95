// Arrays in the machine's memory for the Thrust workloads.
#pragma once

#include "machine.hpp"

#include <pagesift/core/bytes.hpp>

#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/transform.h>

#include <cstddef>
#include <cstdint>

namespace bench {

/// An array without initial values that no allocator under test knows of.
template <typename T>
class machine_array {
 public:
  explicit machine_array(std::size_t count)
      : memory_{acquire(pagesift::array_bytes(count, sizeof(T)))}, count_{count} {}

  [[nodiscard]] T* data() const noexcept { return static_cast<T*>(memory_.get()); }
  [[nodiscard]] auto begin() const { return thrust::device_pointer_cast(data()); }
  [[nodiscard]] auto end() const { return begin() + static_cast<std::ptrdiff_t>(count_); }

 private:
  machine_memory memory_;
  std::size_t count_;
};

/// A scramble of the numbers from 0 on, the same in every run.
struct scrambled {
#ifdef __CUDACC__
  __host__ __device__
#endif
      int
      operator()(std::uint32_t i) const {
    i = (i ^ (i >> 16)) * 0x45d9f3bU;
    i = (i ^ (i >> 16)) * 0x45d9f3bU;
    return static_cast<int>((i ^ (i >> 16)) >> 1);
  }
};

/// `count` scrambled numbers in which each value stands `repeats` times side by side.
struct repeated {
  std::uint32_t repeats = 1;
#ifdef __CUDACC__
  __host__ __device__
#endif
      int
      operator()(std::uint32_t i) const {
    return scrambled{}(i / repeats);
  }
};

[[nodiscard]] inline machine_array<int> make_numbers(std::size_t count, std::uint32_t repeats = 1) {
  machine_array<int> numbers{count};
  const thrust::counting_iterator<std::uint32_t> first{0};
  thrust::transform(thrust::device, first, first + static_cast<std::ptrdiff_t>(count),
                    numbers.begin(), repeated{repeats});
  return numbers;
}

}  // namespace bench
