// The calls of the CUDA backend that reserve addresses and map memory behind them.
#pragma once

#include <pagesift/backend/cuda_caller.hpp>
#include <pagesift/backend/cuda_mapping_functions.hpp>
#include <pagesift/backend/virtual_memory.hpp>
#include <pagesift/core/bytes.hpp>

#include <cstddef>
#include <vector>

namespace pagesift {
inline namespace PAGESIFT_CUDA_NAMESPACE {

/// Virtual memory of one device.
///
/// CUDA permits every one of these calls during a stream capture of any mode. What a call costs
/// follows the number of pieces, not their bytes: on an H200 about 13 us to create, 2 to map, 31 to
/// give access, 20 to unmap and 14 to destroy one of 2 MiB. Unmapping waits for no work.
class cuda_mapper : public cuda_caller {
 public:
  using physical_type = CUmemGenericAllocationHandle;

  /// Besides what the driver says: cudaErrorCallRequiresNewerDriver where it lacks a function,
  /// cudaErrorNotSupported where the device lacks virtual memory, RDMA to it or pages of 2 MiB,
  /// cudaErrorPeerAccessUnsupported where a peer cannot reach the device. Tries it for real, so it
  /// is a shortage where the device has not even 2 MiB left.
  [[nodiscard]] status can_map(const mapping_options& options) const noexcept {
    status result = supports(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
    if (result.ok() && options.gpu_direct_rdma) {
      result = supports(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
    }
    for (const int peer : options.peers) {
      result = result.ok() ? reaches(peer) : result;
    }
    result = result.ok() ? maps_pages(options) : result;
    return result.ok() ? try_page(options) : result;
  }

  [[nodiscard]] std::size_t granule_bytes() const noexcept { return page; }

  status reserve(std::size_t bytes, void*& p) const noexcept {
    CUdeviceptr address = 0;
    const status result = mapping_call("cuMemAddressReserve", [&] {
      return is_whole(bytes) ? functions_->address_reserve(&address, bytes, page, 0, 0)
                             : CUDA_ERROR_INVALID_VALUE;
    });
    if (result.ok()) {
      p = reinterpret_cast<void*>(address);
    }
    return result;
  }

  status unreserve(void* p, std::size_t bytes) const noexcept {
    return mapping_call("cuMemAddressFree",
                        [&] { return functions_->address_free(address_of(p), bytes); });
  }

  /// More than the device has in all is a shortage without asking.
  status create(std::size_t bytes, const mapping_options& options,
                physical_type& h) const noexcept {
    const CUmemAllocationProp wanted = properties(options);
    physical_type made{};
    const status result = mapping_call("cuMemCreate", [&] {
      if (!is_whole(bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      return bytes > total_bytes_ ? CUDA_ERROR_OUT_OF_MEMORY
                                  : functions_->create(&made, bytes, &wanted, 0);
    });
    if (result.ok()) {
      h = made;
    }
    return result;
  }

  status destroy(physical_type h) const noexcept {
    return mapping_call("cuMemRelease", [&] { return functions_->release(h); });
  }

  status map(void* p, std::size_t bytes, physical_type h,
             const mapping_options& options) const noexcept {
    const CUdeviceptr address = address_of(p);
    const status mapped =
        mapping_call("cuMemMap", [&] { return functions_->map(address, bytes, 0, h, 0); });
    if (!mapped.ok()) {
      return mapped;
    }
    const status opened =
        mapping_call("cuMemSetAccess", [&] { return open_to_all(address, bytes, options.peers); });
    if (!opened.ok()) {
      (void)unmap(p, bytes);
    }
    return opened;
  }

  status unmap(void* p, std::size_t bytes) const noexcept {
    return mapping_call("cuMemUnmap", [&] { return functions_->unmap(address_of(p), bytes); });
  }

 protected:
  cuda_mapper(const cuda_driver& driver, const cuda_mapping_functions& functions, int device,
              const cuda_primary_context& context) noexcept
      : cuda_caller{driver, device, context}, functions_{&functions} {}

 private:
  static constexpr std::size_t page = 2 * mebibyte;

  [[nodiscard]] static CUdeviceptr address_of(void* p) noexcept {
    return reinterpret_cast<CUdeviceptr>(p);
  }

  [[nodiscard]] static bool is_whole(std::size_t bytes) noexcept {
    return bytes != 0 && bytes % page == 0;
  }

  /// For all calls here: the driver may lack them.
  template <typename Call>
  status mapping_call(const char* name, Call&& call) const noexcept {
    if (functions_->missing != nullptr) {
      return {outcome::failed, cudaErrorCallRequiresNewerDriver, functions_->missing};
    }
    return in_context(name, call);
  }

  [[nodiscard]] status supports(CUdevice_attribute attribute) const noexcept {
    return mapping_call("cuDeviceGetAttribute", [&] {
      CUdevice handle = 0;
      int supported = 0;
      CUresult result = driver_->device_get(&handle, device_);
      if (result == CUDA_SUCCESS) {
        result = functions_->device_get_attribute(&supported, attribute, handle);
      }
      return result == CUDA_SUCCESS && supported == 0 ? CUDA_ERROR_NOT_SUPPORTED : result;
    });
  }

  [[nodiscard]] status reaches(int peer) const noexcept {
    return mapping_call("cuDeviceCanAccessPeer", [&] {
      CUdevice mine = 0;
      CUdevice other = 0;
      int reachable = 0;
      CUresult result = driver_->device_get(&mine, device_);
      if (result == CUDA_SUCCESS) {
        result = driver_->device_get(&other, peer);
      }
      if (result == CUDA_SUCCESS) {
        result = functions_->device_can_access_peer(&reachable, other, mine);
      }
      return result == CUDA_SUCCESS && reachable == 0 ? CUDA_ERROR_PEER_ACCESS_UNSUPPORTED : result;
    });
  }

  /// Whether 2 MiB can be mapped on their own.
  [[nodiscard]] status maps_pages(const mapping_options& options) const noexcept {
    const CUmemAllocationProp wanted = properties(options);
    return mapping_call("cuMemGetAllocationGranularity", [&] {
      std::size_t bytes = 0;
      const CUresult result =
          functions_->get_granularity(&bytes, &wanted, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
      const bool fits = bytes != 0 && page % bytes == 0;
      return result == CUDA_SUCCESS && !fits ? CUDA_ERROR_NOT_SUPPORTED : result;
    });
  }

  /// Reserves, creates and maps a page and undoes it all. Returns the first failure.
  [[nodiscard]] status try_page(const mapping_options& options) const noexcept {
    void* p = nullptr;
    const status reserved = reserve(page, p);
    if (!reserved.ok()) {
      return reserved;
    }
    const status mapped = try_page_at(p, options);
    const status unreserved = unreserve(p, page);
    return mapped.ok() ? unreserved : mapped;
  }

  [[nodiscard]] status try_page_at(void* p, const mapping_options& options) const noexcept {
    physical_type h{};
    status result = create(page, options, h);
    if (!result.ok()) {
      return result;
    }
    result = map(p, page, h, options);
    if (result.ok()) {
      result = unmap(p, page);
    }
    const status destroyed = destroy(h);
    return result.ok() ? destroyed : result;
  }

  [[nodiscard]] CUmemAllocationProp properties(const mapping_options& options) const noexcept {
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    wanted.location.id = device_;
    wanted.allocFlags.gpuDirectRDMACapable = options.gpu_direct_rdma ? 1 : 0;
    return wanted;
  }

  /// Read and write access for the device, then for its peers: a mapping starts with none.
  [[nodiscard]] CUresult open_to_all(CUdeviceptr address, std::size_t bytes,
                                     const std::vector<int>& peers) const noexcept {
    CUresult result = open_to(device_, address, bytes);
    for (const int peer : peers) {
      result = result == CUDA_SUCCESS ? open_to(peer, address, bytes) : result;
    }
    return result;
  }

  [[nodiscard]] CUresult open_to(int device, CUdeviceptr address,
                                 std::size_t bytes) const noexcept {
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return functions_->set_access(address, bytes, &access, 1);
  }

  const cuda_mapping_functions* functions_;
};

}  // namespace PAGESIFT_CUDA_NAMESPACE
}  // namespace pagesift
