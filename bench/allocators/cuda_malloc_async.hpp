// CUDA's stream-ordered allocator, told to keep what it is given back.
#pragma once

#include "../figures.hpp"
#include "../machine.hpp"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

namespace bench {

/// The default memory pool of the current device with a release threshold of "all"; left empty and
/// with its threshold of 0 when this object ends.
class cuda_malloc_async {
 public:
  static constexpr const char* name = "cuda_malloc_async";
  static constexpr int warm_up_rounds = 8;
  static constexpr bool keeps_memory = true;

  cuda_malloc_async() {
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetDefaultMemPool(&pool_, device) != cudaSuccess) {
      (void)cudaGetLastError();
      throw std::bad_alloc{};
    }
    set_attribute(cudaMemPoolAttrReleaseThreshold, std::numeric_limits<std::uint64_t>::max());
    set_attribute(cudaMemPoolAttrReservedMemHigh, 0);
  }
  cuda_malloc_async(const cuda_malloc_async&) = delete;
  cuda_malloc_async& operator=(const cuda_malloc_async&) = delete;
  ~cuda_malloc_async() {
    synchronize();
    set_attribute(cudaMemPoolAttrReleaseThreshold, 0);
    (void)cudaMemPoolTrimTo(pool_, 0);
  }

  [[nodiscard]] void* allocate(std::size_t bytes, stream s) {
    void* p = nullptr;
    if (cudaMallocAsync(&p, bytes, s) != cudaSuccess) {
      (void)cudaGetLastError();
      throw std::bad_alloc{};
    }
    return p;
  }
  void deallocate(void* p, std::size_t /*bytes*/, stream s) noexcept { (void)cudaFreeAsync(p, s); }

  /// Memory whose free the streams have not reached yet stays.
  void trim() { (void)cudaMemPoolTrimTo(pool_, 0); }

  [[nodiscard]] figures report() const {
    return {{},
            {},
            {},
            attribute(cudaMemPoolAttrReservedMemCurrent),
            attribute(cudaMemPoolAttrReservedMemHigh)};
  }

 private:
  void set_attribute(cudaMemPoolAttr attribute, std::uint64_t value) noexcept {
    (void)cudaMemPoolSetAttribute(pool_, attribute, &value);
  }
  [[nodiscard]] std::uint64_t attribute(cudaMemPoolAttr attribute) const noexcept {
    std::uint64_t value = 0;
    (void)cudaMemPoolGetAttribute(pool_, attribute, &value);
    return value;
  }

  cudaMemPool_t pool_ = nullptr;
};

}  // namespace bench
