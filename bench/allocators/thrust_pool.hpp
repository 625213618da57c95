// Thrust's disjoint synchronized pool: power-of-two buckets under one mutex. It knows no streams.
//
// Its default options treat every request above 1 MiB as oversized: an exact block, found again by
// a linear search at each free. Here the buckets reach up to 64 GiB, with one block to a chunk for
// the large ones, so that large requests are answered from a bucket too; chunks of small blocks
// start at 2 MiB and grow as by default.
#pragma once

#include "../figures.hpp"
#include "../machine.hpp"

#include <pagesift/core/bytes.hpp>

#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/memory.h>
#include <thrust/mr/disjoint_sync_pool.h>
#include <thrust/mr/memory_resource.h>
#include <thrust/mr/new.h>

#include <cstddef>
#include <cstdint>

namespace bench {

/// Memory of the machine as a resource of Thrust. The pool calls it under its mutex.
class counted_machine final
    : public thrust::mr::memory_resource<thrust::pointer<void, thrust::device_system_tag>> {
 public:
  using pointer = thrust::pointer<void, thrust::device_system_tag>;

  pointer do_allocate(std::size_t bytes, std::size_t /*alignment*/) override {
    void* const p = acquire(bytes);
    ++calls_;
    held_bytes_ += bytes;
    return pointer{p};
  }
  void do_deallocate(pointer p, std::size_t bytes, std::size_t /*alignment*/) override {
    held_bytes_ -= bytes;
    release(p.get());
  }

  [[nodiscard]] std::uint64_t calls() const noexcept { return calls_; }
  [[nodiscard]] std::uint64_t held_bytes() const noexcept { return held_bytes_; }

 private:
  std::uint64_t calls_ = 0;
  std::uint64_t held_bytes_ = 0;
};

class thrust_pool {
 public:
  static constexpr const char* name = "thrust_pool";
  static constexpr int warm_up_rounds = 8;
  static constexpr bool keeps_memory = true;
  using resource_type =
      thrust::mr::disjoint_synchronized_pool_resource<counted_machine,
                                                      thrust::mr::new_delete_resource>;

  [[nodiscard]] void* allocate(std::size_t bytes, stream) { return pool_.do_allocate(bytes).get(); }
  void deallocate(void* p, std::size_t bytes, stream) {
    pool_.do_deallocate(counted_machine::pointer{p}, bytes);
  }

  /// All or nothing: memory in use goes, too.
  void trim() { pool_.release(); }

  /// The pool gives nothing back by itself, so what it holds is its peak.
  [[nodiscard]] figures report() const {
    return {machine_.calls(), {}, {}, machine_.held_bytes(), machine_.held_bytes()};
  }

  [[nodiscard]] resource_type& resource() noexcept { return pool_; }

 private:
  static thrust::mr::pool_options options() {
    thrust::mr::pool_options options = resource_type::get_default_options();
    options.largest_block_size = 64 * pagesift::gibibyte;
    options.max_bytes_per_chunk = options.largest_block_size;
    options.min_blocks_per_chunk = 1;
    options.min_bytes_per_chunk = 2 * pagesift::mebibyte;
    return options;
  }

  counted_machine machine_;
  thrust::mr::new_delete_resource bookkeeper_;
  resource_type pool_{&machine_, &bookkeeper_, options()};
};

}  // namespace bench
