// Compiled with --default-stream per-thread: the default stream is another one in each thread.
#include "each_policy.hpp"
#include "fake_cuda.hpp"
#include "recording_pool.hpp"

#include <thrust/sort.h>

#include <thread>
#include <type_traits>

namespace pagesift_test {
namespace {

static_assert(
    std::is_same_v<decltype(pagesift::device), decltype(pagesift::cuda_per_thread_system::device)>);

TEST_CASE("a policy without a stream tells the pool the thread's own default stream") {
  std::vector<int> values(5000, 1);
  const thrust::device_ptr<int> first{values.data()};
  recording_pool pool;
  thrust::sort(thrust::device(pool.handle()), first, first + 5000);
  CHECK(pool.taken == std::vector<cudaStream_t>(1, cudaStreamPerThread));
  CHECK(pool.returned == std::vector<cudaStream_t>(1, cudaStreamPerThread));
}

TEST_CASE("pagesift::device runs on the thread's own default stream") {
  std::vector<int> values(5000, 1);
  const thrust::device_ptr<int> first{values.data()};
  fake_cuda::clear_log();
  thrust::sort(pagesift::device_nosync, first, first + 5000);
  std::size_t launches = 0;
  for (const fake_cuda::call& call : fake_cuda::log()) {
    if (call.name == "cudaLaunchKernel") {
      CHECK(call.stream == cudaStreamPerThread);
      ++launches;
    }
  }
  CHECK(launches > 0);
  CHECK(fake_cuda::pending(cudaStreamPerThread));
}

TEST_CASE("a default stream's memory does not go to another thread's while kernels run") {
  pagesift::device_pool pool;
  const std::size_t bytes = 4000;
  void* const mine = pool.allocate(bytes, nullptr);
  REQUIRE(cudaMemsetAsync(mine, 0, bytes, nullptr) == cudaSuccess);
  pool.deallocate(mine, bytes, nullptr);
  void* theirs = nullptr;
  std::thread{[&] { theirs = pool.allocate(bytes, nullptr); }}.join();
  CHECK(theirs != mine);
  CHECK(pool.allocate(bytes, cudaStreamPerThread) == mine);
}

TEST_CASE("a vector on the thread's own default stream waits for no stream before it is filled") {
  pagesift::device_pool pool;
  fake_cuda::clear_log();
  for (const cudaStream_t stream : {cudaStream_t{nullptr}, cudaStreamPerThread}) {
    const pagesift::device_vector<int> v(1000, 1, pagesift::allocator<int>{pool, stream});
  }
  CHECK(fake_cuda::count("cuEventSynchronize") == 0);
  const pagesift::device_vector<int> v(1000, 1, pagesift::allocator<int>{pool, cudaStreamLegacy});
  CHECK(fake_cuda::count("cuEventSynchronize") == 1);
}

}  // namespace
}  // namespace pagesift_test
