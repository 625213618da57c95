// cudaDeviceReset while a pool lives.
#include "late_write.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

using pagesift::cuda_pool;
using pagesift::mebibyte;
using pagesift::reset_error;

namespace {

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  gpu::require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

/// Leaves 40 MiB idle on the stream, sealed where there are several streams.
void leave_idle(cuda_pool& pool, cudaStream_t stream) {
  void* const p = pool.allocate(40 * mebibyte, stream);
  gpu::fill(p, 40 * mebibyte, 1, stream);
  pool.deallocate(p, 40 * mebibyte, stream);
}

/// Without `gpu::check`: a reset takes away what that counts in.
void check_works(cuda_pool& pool) {
  constexpr std::size_t bytes = 40 * mebibyte;
  void* const p = pool.allocate(bytes, nullptr);
  gpu::fill(p, bytes, 2, nullptr);
  std::vector<unsigned> words(bytes / sizeof(unsigned));
  gpu::require(cudaMemcpy(words.data(), p, bytes, cudaMemcpyDeviceToHost));
  CHECK(std::count(words.begin(), words.end(), 2U) == static_cast<std::ptrdiff_t>(words.size()));
  pool.deallocate(p, bytes, nullptr);
}

/// A new context is made by the first use of the runtime.
void reset_device(bool use_runtime) {
  gpu::require(cudaDeviceSynchronize());
  gpu::require(cudaDeviceReset());
  if (use_runtime) {
    gpu::require(cudaFree(nullptr));
  }
}

}  // namespace

TEST_CASE("after a reset a pool hands nothing out, calls nothing and ends; another works") {
  for (const bool use_runtime : {false, true}) {
    CAPTURE(use_runtime);
    auto pool = std::make_unique<cuda_pool>(gpu::eager_seals());
    const cudaStream_t stream = new_stream();
    leave_idle(*pool, stream);
    leave_idle(*pool, nullptr);
    const auto bound = pool->on(stream);
    void* const kept = pool->allocate(4096, stream);
    void* const other = pool->allocate(4096, nullptr);
    reset_device(use_runtime);
    CHECK_THROWS_AS((void)pool->allocate(40 * mebibyte, nullptr), reset_error);
    CHECK_THROWS_AS((void)pool->allocate(40 * mebibyte, stream), reset_error);
    CHECK_THROWS_AS((void)pool->allocate_sync(40 * mebibyte), reset_error);
    CHECK_THROWS_AS((void)bound.allocate(40 * mebibyte), reset_error);
    CHECK_THROWS_AS((void)pool->stats(), reset_error);
    pool->deallocate(kept, 4096, stream);
    pool->deallocate_sync(other, 4096);
    CHECK_NOTHROW(pool->trim());
    CHECK(pool->found_reset());
    pool.reset();
    cuda_pool young;
    check_works(young);
    reset_device(true);
  }
}

TEST_CASE("a created stream, which may have an old one's handle, gets no old pointer") {
  cuda_pool pool;
  leave_idle(pool, new_stream());
  reset_device(true);
  CHECK_THROWS_AS((void)pool.allocate(40 * mebibyte, new_stream()), reset_error);
}

TEST_CASE("a pool that nobody asks after a reset frees and ends without a crash") {
  for (const bool use_runtime : {false, true}) {
    CAPTURE(use_runtime);
    cuda_pool pool{gpu::eager_seals()};
    const cudaStream_t stream = new_stream();
    leave_idle(pool, stream);
    leave_idle(pool, nullptr);
    void* const kept = pool.allocate(4096, stream);
    reset_device(use_runtime);
    pool.deallocate(kept, 4096, stream);
  }
}

TEST_CASE("the default pool is another once a request has found the reset") {
  for (const bool use_runtime : {false, true}) {
    CAPTURE(use_runtime);
    leave_idle(cuda_pool::default_pool(), nullptr);
    reset_device(use_runtime);
    CHECK_THROWS_AS((void)cuda_pool::default_pool().allocate(4096, nullptr), reset_error);
    check_works(cuda_pool::default_pool());
  }
}
