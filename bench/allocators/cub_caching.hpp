// cub::CachingDeviceAllocator, as it comes and with bins that suit large blocks.
#pragma once

#include "../figures.hpp"
#include "../machine.hpp"

#include <cub/util_allocator.cuh>

#include <cstddef>
#include <cstdint>
#include <new>

namespace bench {

class cub_caching_base {
 public:
  template <typename... Options>
  explicit cub_caching_base(Options... options) : allocator_{options...} {}

  [[nodiscard]] void* allocate(std::size_t bytes, stream s) {
    void* p = nullptr;
    if (allocator_.DeviceAllocate(&p, bytes, s) != cudaSuccess) {
      (void)cudaGetLastError();
      throw std::bad_alloc{};
    }
    return p;
  }
  void deallocate(void* p, std::size_t /*bytes*/, stream) noexcept {
    (void)allocator_.DeviceFree(p);
  }

  void trim() { (void)allocator_.FreeAllCached(); }

  [[nodiscard]] figures report() const {
    std::uint64_t held_bytes = 0;
    for (const auto& [device, bytes] : allocator_.cached_bytes) {
      held_bytes += bytes.free + bytes.live;
    }
    return {device_allocation_calls(), {}, {}, held_bytes, {}};
  }

 private:
  cub::CachingDeviceAllocator allocator_;
};

/// Bins of 8^3 to 8^7 bytes, at most 6 MiB cached; above 2 MiB each request goes to the device.
class cub_caching : public cub_caching_base {
 public:
  static constexpr const char* name = "cub_caching";
  static constexpr int warm_up_rounds = 1;     // what fits into its cache is there after one
  static constexpr bool keeps_memory = false;  // of what the traces ask for, next to nothing
};

/// Bins of 2^8 to 2^36 bytes, no cap.
class cub_caching_tuned : public cub_caching_base {
 public:
  static constexpr const char* name = "cub_caching_tuned";
  static constexpr int warm_up_rounds = 8;
  static constexpr bool keeps_memory = true;

  cub_caching_tuned() : cub_caching_base{2U, 8U, 36U} {}
};

}  // namespace bench
