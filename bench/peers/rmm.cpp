#include "rmm.hpp"

#include <cuda/memory_resource>
#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <rmm/aligned.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <utility>

namespace bench {
namespace {

/// What was asked of the device. A resource makes its upstream calls under a lock of its own.
struct device_counts {
  std::atomic<std::uint64_t> allocations{0};
  std::atomic<std::uint64_t> held_bytes{0};
  std::atomic<std::uint64_t> peak_bytes{0};
};

/// RMM's cudaMalloc resource, counted, as an upstream resource.
class counted_device {
 public:
  explicit counted_device(std::shared_ptr<device_counts> counts) : counts_{std::move(counts)} {}

  void* allocate_sync(std::size_t bytes, std::size_t alignment) {
    void* const p = device_.allocate_sync(bytes, alignment);
    ++counts_->allocations;
    counts_->held_bytes += bytes;
    counts_->peak_bytes = std::max(counts_->peak_bytes.load(), counts_->held_bytes.load());
    return p;
  }
  void deallocate_sync(void* p, std::size_t bytes, std::size_t alignment) noexcept {
    device_.deallocate_sync(p, bytes, alignment);
    counts_->held_bytes -= bytes;
  }
  void* allocate(cuda::stream_ref, std::size_t bytes, std::size_t alignment) {
    return allocate_sync(bytes, alignment);
  }
  void deallocate(cuda::stream_ref, void* p, std::size_t bytes, std::size_t alignment) noexcept {
    deallocate_sync(p, bytes, alignment);
  }

  bool operator==(const counted_device& other) const noexcept { return counts_ == other.counts_; }
  bool operator!=(const counted_device& other) const noexcept { return !(*this == other); }
  friend void get_property(const counted_device&, cuda::mr::device_accessible) noexcept {}

 private:
  rmm::mr::cuda_memory_resource device_;
  std::shared_ptr<device_counts> counts_;
};

/// The alignment of every block, which RMM must be told, and what its sizes are multiples of.
constexpr std::size_t granule_bytes = rmm::CUDA_ALLOCATION_ALIGNMENT;

constexpr std::size_t whole_granules(std::size_t bytes) {
  return bytes / granule_bytes * granule_bytes;
}

template <typename Resource>
class resource_of final : public rmm_resource {
 public:
  resource_of(Resource resource, std::shared_ptr<device_counts> counts)
      : counts_{std::move(counts)}, resource_{std::move(resource)} {}

  void* allocate(std::size_t bytes, cudaStream_t stream) override {
    return resource_.allocate(cuda::stream_ref{stream}, bytes, granule_bytes);
  }
  void deallocate(void* p, std::size_t bytes, cudaStream_t stream) noexcept override {
    resource_.deallocate(cuda::stream_ref{stream}, p, bytes, granule_bytes);
  }
  figures report() const override {
    return {counts_->allocations.load(),
            {},
            {},
            counts_->held_bytes.load(),
            counts_->peak_bytes.load()};
  }

 private:
  std::shared_ptr<device_counts> counts_;
  Resource resource_;
};

template <typename Make>
std::unique_ptr<rmm_resource> over_counted_device(const Make& make) {
  auto counts = std::make_shared<device_counts>();
  auto resource = make(counted_device{counts});
  return std::make_unique<resource_of<decltype(resource)>>(std::move(resource), std::move(counts));
}

}  // namespace

std::unique_ptr<rmm_resource> make_rmm_pool(std::size_t initial_bytes) {
  return over_counted_device([&](counted_device device) {
    return rmm::mr::pool_memory_resource{std::move(device), whole_granules(initial_bytes)};
  });
}

std::unique_ptr<rmm_resource> make_rmm_arena(std::size_t bytes) {
  return over_counted_device([&](const counted_device& device) {
    for (std::size_t size = whole_granules(bytes);; size = whole_granules(size - size / 256)) {
      try {
        return rmm::mr::arena_memory_resource{device, size};
      } catch (const std::bad_alloc&) {
        if (size < bytes / 2) {
          throw;
        }
      }
    }
  });
}

std::unique_ptr<rmm_resource> make_rmm_binning(std::size_t initial_bytes) {
  return over_counted_device([&](counted_device device) {
    rmm::mr::pool_memory_resource pool{std::move(device), whole_granules(initial_bytes)};
    // The bins of RMM's own benchmark and of the example in its header.
    return rmm::mr::binning_memory_resource{std::move(pool), 18, 22};
  });
}

}  // namespace bench
