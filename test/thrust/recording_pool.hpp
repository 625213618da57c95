// A pool that writes down which stream it was told of. Its memory is the host's, which is what the
// fake CUDA runtime works on.
#pragma once

#include <pagesift/pool/pool_handle.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <new>
#include <vector>

namespace pagesift_test {

class recording_pool {
 public:
  using stream_type = cudaStream_t;

  static recording_pool& default_pool() {
    static recording_pool pool;
    return pool;
  }

  [[nodiscard]] pagesift::pool_handle<recording_pool> handle() {
    return pagesift::pool_handle<recording_pool>{*this};
  }

  [[nodiscard]] void* allocate(std::size_t bytes, cudaStream_t stream) {
    taken.push_back(stream);
    return acquire(bytes);
  }
  void deallocate(void* p, std::size_t, cudaStream_t stream) noexcept {
    returned.push_back(stream);
    release(p);
  }
  [[nodiscard]] void* allocate_sync(std::size_t bytes) {
    ++without_stream;
    return acquire(bytes);
  }
  void deallocate_sync(void* p, std::size_t) noexcept { release(p); }

  std::vector<cudaStream_t> taken;     ///< the stream of each allocation
  std::vector<cudaStream_t> returned;  ///< the stream of each free
  std::size_t without_stream = 0;      ///< allocations that named none

 private:
  static void* acquire(std::size_t bytes) { return ::operator new (bytes, std::align_val_t{256}); }
  static void release(void* p) noexcept { ::operator delete (p, std::align_val_t{256}); }
};

}  // namespace pagesift_test
