// Tells tools such as compute-sanitizer about memory, by NVTX's memory registration.
#pragma once

#include <pagesift/backend/cuda_default_stream.hpp>

#include <cstddef>

#if defined(__has_include)
#if __has_include(<nvtx3/nvToolsExtMem.h>)
#include <nvtx3/nvToolsExtMem.h>
#define PAGESIFT_HAS_NVTX_MEMORY
#endif
#endif

#ifdef PAGESIFT_HAS_NVTX_MEMORY
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#endif

namespace pagesift {
inline namespace PAGESIFT_CUDA_NAMESPACE {

#ifdef PAGESIFT_HAS_NVTX_MEMORY

/// Registers what a pool holds as heaps and what its users have as regions of them. Registration
/// takes effect in the order of the host's calls, not of any stream. Thread-safe; where no tool
/// listens each call is a few instructions.
class cuda_announcer {
 public:
  template <typename Backend>
  explicit cuda_announcer(const Backend&) noexcept {}

  /// Accesses to these bytes are errors from now on, but for those of its regions.
  void heap(const void* p, std::size_t bytes) noexcept {
    const nvtxMemVirtualRangeDesc_t range{bytes, p};
    nvtxMemHeapDesc_t description{};
    description.extCompatID = NVTX_EXT_COMPATID_MEM;
    description.structSize = sizeof description;
    description.usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR;
    description.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
    description.typeSpecificDescSize = sizeof range;
    description.typeSpecificDesc = &range;
    const nvtxMemHeapHandle_t handle = nvtxMemHeapRegister(domain(), &description);
    try {
      const std::lock_guard<std::mutex> lock{mutex_};
      heaps_[address(p)] = handle;
    } catch (...) {  // host memory is short: better no heap than one without regions
      nvtxMemHeapUnregister(domain(), handle);
    }
  }

  void no_heap(const void* p) noexcept {
    const std::lock_guard<std::mutex> lock{mutex_};
    const auto found = heaps_.find(address(p));
    if (found != heaps_.end()) {
      nvtxMemHeapUnregister(domain(), found->second);
      heaps_.erase(found);
    }
  }

  /// Precondition: the bytes lie in one heap.
  void region(const void* p, std::size_t bytes) noexcept {
    const std::lock_guard<std::mutex> lock{mutex_};
    const auto next = heaps_.upper_bound(address(p));
    if (next == heaps_.begin()) {
      return;
    }
    const nvtxMemVirtualRangeDesc_t range{bytes, p};
    nvtxMemRegionsRegisterBatch_t batch{};
    batch.extCompatID = NVTX_EXT_COMPATID_MEM;
    batch.structSize = sizeof batch;
    batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
    batch.heap = std::prev(next)->second;
    batch.regionCount = 1;
    batch.regionDescElementSize = sizeof range;
    batch.regionDescElements = &range;
    nvtxMemRegionsRegister(domain(), &batch);
  }

  void no_region(const void* p) noexcept {
    nvtxMemRegionRef_t reference{};
    reference.pointer = p;
    nvtxMemRegionsUnregisterBatch_t batch{};
    batch.extCompatID = NVTX_EXT_COMPATID_MEM;
    batch.structSize = sizeof batch;
    batch.refType = NVTX_MEM_REGION_REF_TYPE_POINTER;
    batch.refCount = 1;
    batch.refElementSize = sizeof reference;
    batch.refElements = &reference;
    nvtxMemRegionsUnregister(domain(), &batch);
  }

 private:
  /// Lives as long as the process: pools may be static objects.
  [[nodiscard]] static nvtxDomainHandle_t domain() noexcept {
    static const nvtxDomainHandle_t made = nvtxDomainCreateA("pagesift");
    return made;
  }

  [[nodiscard]] static std::uintptr_t address(const void* p) noexcept {
    return reinterpret_cast<std::uintptr_t>(p);
  }

  std::mutex mutex_;
  std::map<std::uintptr_t, nvtxMemHeapHandle_t> heaps_;
};

#endif

}  // namespace PAGESIFT_CUDA_NAMESPACE
}  // namespace pagesift
