// RMM's pool, arena and binning resources over cudaMalloc, set up as its documentation says: told
// at the start how much memory there will be.
#pragma once

#include "../figures.hpp"
#include "../machine.hpp"
#include "../peers/rmm.hpp"
#include "../setup.hpp"

#include <pagesift/core/bytes.hpp>

#include <cstddef>
#include <memory>

namespace bench {

/// What is reserved when a workload does not care. RMM's own default is half of the device's free
/// memory; this is more than such a workload uses and takes less time to reserve.
inline constexpr std::size_t rmm_default_bytes = 8 * pagesift::gibibyte;

/// `make(initial_bytes)` makes the resource.
template <std::unique_ptr<rmm_resource> (*make)(std::size_t)>
class rmm_allocator {
 public:
  static constexpr int warm_up_rounds = 8;
  static constexpr bool keeps_memory = true;

  explicit rmm_allocator(const setup& wanted)
      : initial_bytes_{wanted.initial_bytes.value_or(rmm_default_bytes)} {}

  [[nodiscard]] void* allocate(std::size_t bytes, stream s) {
    return resource_->allocate(bytes, s);
  }
  void deallocate(void* p, std::size_t bytes, stream s) noexcept {
    resource_->deallocate(p, bytes, s);
  }

  /// RMM gives nothing back while a resource lives, so this makes another one.
  void trim() {
    resource_.reset();
    resource_ = make(initial_bytes_);
  }

  [[nodiscard]] figures report() const { return resource_->report(); }

 private:
  std::size_t initial_bytes_;
  std::unique_ptr<rmm_resource> resource_{make(initial_bytes_)};
};

class rmm_pool : public rmm_allocator<make_rmm_pool> {
 public:
  static constexpr const char* name = "rmm_pool";
  using rmm_allocator::rmm_allocator;
};

class rmm_binning : public rmm_allocator<make_rmm_binning> {
 public:
  static constexpr const char* name = "rmm_binning";
  using rmm_allocator::rmm_allocator;
};

class rmm_arena : public rmm_allocator<make_rmm_arena> {
 public:
  static constexpr const char* name = "rmm_arena";
  using rmm_allocator::rmm_allocator;
};

template <>
inline constexpr bool never_grows<rmm_arena> = true;

}  // namespace bench
