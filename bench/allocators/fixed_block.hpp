// The limit: one block, handed out for ever. No allocator can be faster. It serves workloads that
// have one block in use at a time, and those that never write to their blocks.
#pragma once

#include "../figures.hpp"
#include "../machine.hpp"

#include <pagesift/core/bytes.hpp>

#include <cstddef>
#include <new>

namespace bench {

class fixed_block {
 public:
  static constexpr const char* name = "fixed_block";
  static constexpr int warm_up_rounds = 8;
  static constexpr bool keeps_memory = true;
  static constexpr std::size_t block_bytes = pagesift::gibibyte;

  [[nodiscard]] void* allocate(std::size_t bytes, stream) {
    if (bytes > block_bytes) {
      throw std::bad_alloc{};
    }
    return block_.get();
  }
  void deallocate(void*, std::size_t /*bytes*/, stream) noexcept {}

  void trim() noexcept {}

  [[nodiscard]] figures report() const { return {0, {}, {}, block_bytes, block_bytes}; }

 private:
  machine_memory block_{acquire(block_bytes)};
};

}  // namespace bench
