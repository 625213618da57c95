// RMM's memory resources behind an interface that names nothing of RMM: its headers bring a CCCL of
// their own, which must not meet the CUDA Toolkit's in one translation unit.
#pragma once

#include "../figures.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

namespace bench {

/// One of RMM's resources over cudaMalloc, which counts what it asks the device for.
class rmm_resource {
 public:
  rmm_resource() = default;
  rmm_resource(const rmm_resource&) = delete;
  rmm_resource& operator=(const rmm_resource&) = delete;
  virtual ~rmm_resource() = default;

  /// \throws std::bad_alloc
  [[nodiscard]] virtual void* allocate(std::size_t bytes, cudaStream_t stream) = 0;
  virtual void deallocate(void* p, std::size_t bytes, cudaStream_t stream) noexcept = 0;
  [[nodiscard]] virtual figures report() const = 0;
};

/// A pool_memory_resource that has taken `initial_bytes` and grows.
[[nodiscard]] std::unique_ptr<rmm_resource> make_rmm_pool(std::size_t initial_bytes);

/// An arena_memory_resource of `bytes`, which never grows; smaller by steps of 1/256 where the
/// device does not have so much in one piece.
[[nodiscard]] std::unique_ptr<rmm_resource> make_rmm_arena(std::size_t bytes);

/// A binning_memory_resource over such a pool, with bins of 256 KiB to 4 MiB.
[[nodiscard]] std::unique_ptr<rmm_resource> make_rmm_binning(std::size_t initial_bytes);

}  // namespace bench
