// The Thrust policies through which a user of each allocator would call an algorithm on the default
// stream: synchronous ones and, on the GPU, ones that do not wait.
#pragma once

#include "allocators/all.hpp"
#include "machine.hpp"

#include <pagesift/adapters/policy.hpp>

#include <thrust/execution_policy.h>

#include <cstddef>

namespace bench {

/// An allocator under test as an allocator of Thrust.
template <typename Allocator>
class thrust_allocator {
 public:
  using value_type = char;

  explicit thrust_allocator(Allocator& allocator) : allocator_{&allocator} {}

  [[nodiscard]] char* allocate(std::size_t bytes) {
    return static_cast<char*>(allocator_->allocate(bytes, stream{}));
  }
  void deallocate(char* p, std::size_t bytes) { allocator_->deallocate(p, bytes, stream{}); }

 private:
  Allocator* allocator_;
};

template <typename Allocator>
[[nodiscard]] auto policy_of(Allocator& allocator) {
  return thrust::device(thrust_allocator<Allocator>{allocator});
}
[[nodiscard]] inline auto policy_of(plain&) { return thrust::device; }
[[nodiscard]] inline auto policy_of(thrust_pool& pool) { return thrust::device(&pool.resource()); }
[[nodiscard]] inline auto policy_of(pagesift_pool& allocator) { return allocator.pool().policy(); }

#ifdef PAGESIFT_DEVICE_IS_CUDA
template <typename Allocator>
[[nodiscard]] auto nosync_policy_of(Allocator& allocator) {
  return thrust::cuda::par_nosync(thrust_allocator<Allocator>{allocator});
}
[[nodiscard]] inline auto nosync_policy_of(plain&) { return thrust::cuda::par_nosync; }
[[nodiscard]] inline auto nosync_policy_of(thrust_pool& pool) {
  return thrust::cuda::par_nosync(&pool.resource());
}
[[nodiscard]] inline auto nosync_policy_of(pagesift_pool& allocator) {
  return allocator.pool().policy_nosync();
}
#endif

}  // namespace bench
