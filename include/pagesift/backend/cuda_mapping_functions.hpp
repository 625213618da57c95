// The CUDA driver's functions for virtual memory, looked up at run time. A driver may lack them.
#pragma once

#include <pagesift/backend/cuda_driver.hpp>

#include <cudaTypedefs.h>

#include <future>

namespace pagesift {
inline namespace PAGESIFT_CUDA_NAMESPACE {

/// Entry points that a driver has since CUDA 10.2 where it has virtual memory.
struct cuda_mapping_functions {
  PFN_cuDeviceGetAttribute_v2000 device_get_attribute = nullptr;
  PFN_cuDeviceCanAccessPeer_v4000 device_can_access_peer = nullptr;
  PFN_cuMemGetAllocationGranularity_v10020 get_granularity = nullptr;
  PFN_cuMemAddressReserve_v10020 address_reserve = nullptr;
  PFN_cuMemAddressFree_v10020 address_free = nullptr;
  PFN_cuMemCreate_v10020 create = nullptr;
  PFN_cuMemRelease_v10020 release = nullptr;
  PFN_cuMemMap_v10020 map = nullptr;
  PFN_cuMemUnmap_v10020 unmap = nullptr;
  PFN_cuMemSetAccess_v10020 set_access = nullptr;

  const char* missing = nullptr;  ///< one that the driver lacks; then none may be called

  /// The entry points, looked up once in a process.
  static const cuda_mapping_functions& get() {
    // On a thread of its own, for the sake of the last error, as cuda_driver does.
    static const cuda_mapping_functions functions = std::async(std::launch::async, load).get();
    return functions;
  }

  /// Looks all of them up. Prefer `get()`: one that is missing stays behind as the calling thread's
  /// last error.
  static cuda_mapping_functions load();

 private:
  template <typename Function>
  void need(Function& function, const char* name, unsigned version) {
    missing = find_if_there(function, name, version) ? missing : name;
  }
};

inline cuda_mapping_functions cuda_mapping_functions::load() {
  cuda_mapping_functions f;
  f.need(f.device_get_attribute, "cuDeviceGetAttribute", 2000);
  f.need(f.device_can_access_peer, "cuDeviceCanAccessPeer", 4000);
  f.need(f.get_granularity, "cuMemGetAllocationGranularity", 10020);
  f.need(f.address_reserve, "cuMemAddressReserve", 10020);
  f.need(f.address_free, "cuMemAddressFree", 10020);
  f.need(f.create, "cuMemCreate", 10020);
  f.need(f.release, "cuMemRelease", 10020);
  f.need(f.map, "cuMemMap", 10020);
  f.need(f.unmap, "cuMemUnmap", 10020);
  f.need(f.set_access, "cuMemSetAccess", 10020);
  return f;
}

}  // namespace PAGESIFT_CUDA_NAMESPACE
}  // namespace pagesift
