// Counts the calls of cudaMalloc that this program makes, in our own code, in Thrust and in CUB
// alike: the program is linked with --wrap=cudaMalloc, which sends them here.
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace {
std::atomic<std::uint64_t> count{0};
}

extern "C" {

cudaError_t __real_cudaMalloc(void** p, std::size_t bytes);

cudaError_t __wrap_cudaMalloc(void** p, std::size_t bytes) {
  count.fetch_add(1, std::memory_order_relaxed);
  return __real_cudaMalloc(p, bytes);
}

std::uint64_t bench_cuda_malloc_count() noexcept { return count.load(std::memory_order_relaxed); }

}  // extern "C"
