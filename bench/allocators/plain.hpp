// No allocator at all: each request goes to the device, as it does for a user of Thrust by default.
#pragma once

#include "../figures.hpp"
#include "../machine.hpp"

#include <cstddef>

namespace bench {

class plain {
 public:
#ifdef PAGESIFT_DEVICE_IS_CUDA
  static constexpr const char* name = "cuda_malloc";
#else
  static constexpr const char* name = "malloc";
#endif
  static constexpr int warm_up_rounds = 1;  // it keeps nothing; kernels are loaded at first use
  static constexpr bool keeps_memory = false;

  [[nodiscard]] void* allocate(std::size_t bytes, stream) { return acquire(bytes); }
  void deallocate(void* p, std::size_t /*bytes*/, stream) noexcept { release(p); }

  void trim() noexcept {}

  /// Thrust's own requests count, too, when a policy without an allocator makes them.
  [[nodiscard]] figures report() const { return {device_allocation_calls(), {}, {}, {}, {}}; }
};

}  // namespace bench
