// Device memory: pages of the host's, mapped when taken and unmapped when given back, so that a
// use after that is a fault here too.
#include "world.hpp"

#include <sys/mman.h>

namespace fake_cuda {

namespace {

constexpr std::size_t largest_alignment = std::size_t{2} << 20;

/// The smallest allocations fit beside others in what the driver has taken already.
std::size_t counted(std::size_t bytes) { return bytes <= 256 ? 0 : bytes; }

/// First address in the mapping that is a multiple of `alignment` and of nothing larger.
void* place(void* mapped, std::size_t alignment) {
  const auto from = reinterpret_cast<std::uintptr_t>(mapped);
  const std::uintptr_t start = (from + 2 * alignment - 1) / (2 * alignment) * (2 * alignment);
  return reinterpret_cast<void*>(start + alignment);
}

}  // namespace

CUresult allocate(std::size_t bytes, void** p) {
  world& w = the_world();
  const int device = current_context()->device;
  if (const CUresult forbidden = potentially_unsafe()) {
    return forbidden;
  }
  if (counted(bytes) > w.bytes_each - w.used[device]) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  allocation a{device, bytes, nullptr, bytes + 2 * largest_alignment};
  a.mapped = mmap(nullptr, a.mapped_bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (a.mapped == MAP_FAILED) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *p = place(a.mapped, w.alignment);
  w.allocations[*p] = a;
  w.used[device] += counted(bytes);
  return CUDA_SUCCESS;
}

CUresult release(void* p) {
  world& w = the_world();
  if (const CUresult forbidden = potentially_unsafe()) {
    return forbidden;
  }
  const auto found = w.allocations.find(p);
  if (found == w.allocations.end()) {
    w.misuse.push_back("memory was given back that was not taken");
    return CUDA_ERROR_INVALID_VALUE;
  }
  complete_device(found->second.device);
  w.used[found->second.device] -= counted(found->second.bytes);
  munmap(found->second.mapped, found->second.mapped_bytes);
  w.allocations.erase(found);
  return CUDA_SUCCESS;
}

CUresult memory_info(std::size_t* free_bytes, std::size_t* total_bytes) {
  world& w = the_world();
  *total_bytes = w.bytes_each;
  *free_bytes = w.bytes_each - w.used[current_context()->device];
  return CUDA_SUCCESS;
}

}  // namespace fake_cuda
