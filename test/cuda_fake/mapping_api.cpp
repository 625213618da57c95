// The driver's functions for virtual memory, reachable through cudaGetDriverEntryPoint only. None
// of them is forbidden during a stream capture.
#include "world.hpp"

namespace fake_cuda {

namespace {

bool is_device(CUdevice device) { return device >= 0 && device < the_world().devices; }

/// Pinned memory of one device is all there is.
CUresult check_properties(const CUmemAllocationProp* wanted) {
  const bool known = wanted->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
                     wanted->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  if (!known) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return is_device(wanted->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

int attribute(int name) {
  const auto found = the_world().attributes.find(name);
  return found == the_world().attributes.end() ? 1 : found->second;
}

CUresult CUDAAPI device_get_attribute(int* value, CUdevice_attribute name, CUdevice device) {
  return contextless_call({"cuDeviceGetAttribute"}, [&] {
    *value = attribute(name);
    return is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult CUDAAPI device_can_access_peer(int* reachable, CUdevice device, CUdevice peer) {
  return contextless_call({"cuDeviceCanAccessPeer"}, [&] {
    *reachable = the_world().peer_access && device != peer ? 1 : 0;
    return is_device(device) && is_device(peer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult CUDAAPI get_granularity(std::size_t* bytes, const CUmemAllocationProp* wanted,
                                 CUmemAllocationGranularity_flags) {
  return driver_call({"cuMemGetAllocationGranularity"}, [&] {
    *bytes = the_world().granularity;
    return check_properties(wanted);
  });
}

CUresult CUDAAPI address_reserve(CUdeviceptr* p, std::size_t bytes, std::size_t alignment,
                                 CUdeviceptr, unsigned long long) {
  return driver_call({"cuMemAddressReserve", nullptr, bytes},
                     [&] { return reserve(p, bytes, alignment); });
}

CUresult CUDAAPI address_free(CUdeviceptr p, std::size_t bytes) {
  return driver_call({"cuMemAddressFree", nullptr, bytes}, [&] { return unreserve(p, bytes); });
}

CUresult CUDAAPI mem_create(CUmemGenericAllocationHandle* h, std::size_t bytes,
                            const CUmemAllocationProp* wanted, unsigned long long) {
  return driver_call({"cuMemCreate", nullptr, bytes}, [&] {
    const CUresult possible = check_properties(wanted);
    if (possible != CUDA_SUCCESS) {
      return possible;
    }
    const bool refused =
        wanted->allocFlags.gpuDirectRDMACapable != 0 &&
        attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED) == 0;
    return refused ? CUDA_ERROR_NOT_SUPPORTED : create(h, bytes, wanted->location.id);
  });
}

CUresult CUDAAPI mem_release(CUmemGenericAllocationHandle h) {
  return driver_call({"cuMemRelease"}, [&] { return destroy(h); });
}

CUresult CUDAAPI mem_map(CUdeviceptr p, std::size_t bytes, std::size_t offset,
                         CUmemGenericAllocationHandle h, unsigned long long) {
  return driver_call({"cuMemMap", nullptr, bytes},
                     [&] { return offset == 0 ? map(p, bytes, h) : CUDA_ERROR_INVALID_VALUE; });
}

CUresult CUDAAPI mem_unmap(CUdeviceptr p, std::size_t bytes) {
  return driver_call({"cuMemUnmap", nullptr, bytes}, [&] { return unmap(p, bytes); });
}

CUresult CUDAAPI mem_set_access(CUdeviceptr p, std::size_t bytes, const CUmemAccessDesc* access,
                                std::size_t count) {
  return driver_call({"cuMemSetAccess", nullptr, bytes}, [&] {
    CUresult result = CUDA_SUCCESS;
    for (std::size_t i = 0; i < count && result == CUDA_SUCCESS; ++i) {
      result = access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                   ? give_access(p, bytes, access[i].location.id)
                   : CUDA_ERROR_INVALID_VALUE;
    }
    return result;
  });
}

template <typename Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

const std::map<std::string, void*>& mapping_functions() {
  static const std::map<std::string, void*> functions{
      {"cuDeviceGetAttribute", address_of(device_get_attribute)},
      {"cuDeviceCanAccessPeer", address_of(device_can_access_peer)},
      {"cuMemGetAllocationGranularity", address_of(get_granularity)},
      {"cuMemAddressReserve", address_of(address_reserve)},
      {"cuMemAddressFree", address_of(address_free)},
      {"cuMemCreate", address_of(mem_create)},
      {"cuMemRelease", address_of(mem_release)},
      {"cuMemMap", address_of(mem_map)},
      {"cuMemUnmap", address_of(mem_unmap)},
      {"cuMemSetAccess", address_of(mem_set_access)}};
  return functions;
}

}  // namespace fake_cuda
