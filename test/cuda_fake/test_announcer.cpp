// What the CUDA backend registers by NVTX, as a tool gets it that is linked into the program.
#include "pool_scene.hpp"

#include <cstddef>
#include <cstdint>
#include <map>

#ifdef PAGESIFT_HAS_NVTX_MEMORY

namespace {

/// The tool: heaps and regions by address. Handles are addresses too.
struct memory_tool {
  std::map<const void*, std::size_t> heaps;
  std::map<const void*, std::size_t> regions;
  std::map<const void*, const void*> heap_of;  ///< of each region
};
memory_tool& tool() {
  static memory_tool it;
  return it;
}

nvtxMemHeapHandle_t register_heap(nvtxDomainHandle_t, const nvtxMemHeapDesc_t* heap) {
  CHECK(heap->extCompatID == NVTX_EXT_COMPATID_MEM);
  CHECK(heap->structSize == sizeof(nvtxMemHeapDesc_t));
  CHECK(heap->usage == NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR);
  CHECK(heap->type == NVTX_MEM_TYPE_VIRTUAL_ADDRESS);
  REQUIRE(heap->typeSpecificDescSize == sizeof(nvtxMemVirtualRangeDesc_t));
  const auto& range = *static_cast<const nvtxMemVirtualRangeDesc_t*>(heap->typeSpecificDesc);
  tool().heaps[range.ptr] = range.size;
  return static_cast<nvtxMemHeapHandle_t>(const_cast<void*>(range.ptr));
}

void unregister_heap(nvtxDomainHandle_t, nvtxMemHeapHandle_t heap) { tool().heaps.erase(heap); }

void register_regions(nvtxDomainHandle_t, const nvtxMemRegionsRegisterBatch_t* batch) {
  CHECK(batch->extCompatID == NVTX_EXT_COMPATID_MEM);
  CHECK(batch->structSize == sizeof(nvtxMemRegionsRegisterBatch_t));
  CHECK(batch->regionType == NVTX_MEM_TYPE_VIRTUAL_ADDRESS);
  REQUIRE(batch->regionDescElementSize == sizeof(nvtxMemVirtualRangeDesc_t));
  const auto* const ranges =
      static_cast<const nvtxMemVirtualRangeDesc_t*>(batch->regionDescElements);
  for (std::size_t i = 0; i < batch->regionCount; ++i) {
    tool().regions[ranges[i].ptr] = ranges[i].size;
    tool().heap_of[ranges[i].ptr] = batch->heap;
  }
}

void unregister_regions(nvtxDomainHandle_t, const nvtxMemRegionsUnregisterBatch_t* batch) {
  CHECK(batch->extCompatID == NVTX_EXT_COMPATID_MEM);
  CHECK(batch->structSize == sizeof(nvtxMemRegionsUnregisterBatch_t));
  CHECK(batch->refType == NVTX_MEM_REGION_REF_TYPE_POINTER);
  REQUIRE(batch->refElementSize == sizeof(nvtxMemRegionRef_t));
  for (std::size_t i = 0; i < batch->refCount; ++i) {
    CHECK(tool().regions.erase(batch->refElements[i].pointer) == 1);
  }
}

template <typename Function>
std::intptr_t slot(Function* function) {
  return reinterpret_cast<std::intptr_t>(function);
}

}  // namespace

/// Called by NVTX at its first use (see nvtx_tool.cpp).
int attach_memory_tool(nvtxExtModuleInfo_t* module) {
  if (module->moduleId != NVTX_EXT_MODULEID_MEM) {
    return 0;
  }
  std::intptr_t* const slots = module->segments[0].functionSlots;
  slots[NVTX3EXT_CBID_nvtxMemHeapRegister] = slot(register_heap);
  slots[NVTX3EXT_CBID_nvtxMemHeapUnregister] = slot(unregister_heap);
  slots[NVTX3EXT_CBID_nvtxMemRegionsRegister] = slot(register_regions);
  slots[NVTX3EXT_CBID_nvtxMemRegionsUnregister] = slot(unregister_regions);
  return 1;
}

TEST_CASE("a tool is told of acquisitions as heaps and of blocks in use as regions of theirs") {
  pagesift::pool_options options;
  options.announce = true;
  pool_scene scene{pagesift::gibibyte, options};
  void* const small = scene.pool.allocate(1000, scene.first);
  void* const large = scene.pool.allocate(50 * mebibyte, scene.second);
  CHECK(tool().regions.size() == 2);
  CHECK(tool().regions.at(small) == 1000);
  CHECK(tool().regions.at(large) == 50 * mebibyte);
  CHECK(tool().heaps.size() >= 2);
  for (void* const p : {small, large}) {
    const auto* const heap = static_cast<const std::byte*>(tool().heap_of.at(p));
    REQUIRE(tool().heaps.count(heap) == 1);
    CHECK(heap <= p);
    CHECK(static_cast<std::byte*>(p) + tool().regions.at(p) <= heap + tool().heaps.at(heap));
  }
  scene.pool.deallocate(small, 1000, scene.first);
  scene.pool.deallocate(large, 50 * mebibyte, scene.second);
  CHECK(tool().regions.empty());
  scene.pool.trim();
  CHECK(tool().heaps.empty());
}

TEST_CASE("a tool is told nothing of a pool that does not announce its memory") {
  pool_scene scene;
  void* const p = scene.pool.allocate(1000, scene.first);
  CHECK(tool().regions.empty());
  CHECK(tool().heaps.empty());
  scene.pool.deallocate(p, 1000, scene.first);
}

#else

TEST_CASE("without NVTX's memory registration a pool is told to announce itself in vain") {
  pagesift::pool_options options;
  options.announce = true;
  pool_scene scene{pagesift::gibibyte, options};
  scene.pool.deallocate(scene.pool.allocate(1000, scene.first), 1000, scene.first);
}

#endif
