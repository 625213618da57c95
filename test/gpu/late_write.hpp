// A last use that is late: a pattern written behind a gate. A stream that gets the block too early
// has its own pattern overwritten.
#pragma once

#include "device_work.hpp"

#include <pagesift/core/bytes.hpp>
#include <pagesift/pool/cuda_pool.hpp>

#include <cstddef>

namespace gpu {

inline constexpr unsigned old_pattern = 0x01d01d01;
inline constexpr unsigned new_pattern = 0x2e32e32e;

/// Frees a block on `stream` that is written only when the gate opens.
inline void leave_late_write(pagesift::cuda_pool& pool, std::size_t bytes, gate& gate,
                             cudaStream_t stream) {
  void* const p = pool.allocate(bytes, stream);
  gate.close(stream);
  fill(p, bytes, old_pattern, stream);
  pool.deallocate(p, bytes, stream);
}

/// Takes a block and writes to it, lets the late writes happen, and checks what is there.
inline void write_and_check(pagesift::cuda_pool& pool, std::size_t bytes, gate& gate,
                            cudaStream_t stream) {
  void* const p = pool.allocate(bytes, stream);
  fill(p, bytes, new_pattern, stream);
  give_a_chance(stream);
  gate.open();
  require(cudaDeviceSynchronize());
  check(p, bytes, new_pattern, stream);
  require(cudaStreamSynchronize(stream));
  pool.deallocate(p, bytes, stream);
}

/// Every free is sealed as soon as a second stream has been seen.
inline pagesift::pool_options eager_seals() {
  pagesift::pool_options options;
  options.seal_bytes = 1;
  return options;
}

}  // namespace gpu
