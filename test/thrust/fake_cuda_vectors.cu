// device_vector on the CUDA backend: which stream its memory is ordered by, and which device's.
#include "each_policy.hpp"
#include "fake_cuda.hpp"

#include <stdexcept>

namespace pagesift_test {
namespace {

using vector = pagesift::device_vector<int>;
using allocator = pagesift::allocator<int>;

/// Leaves `stream` with work that uses the block which is handed out next.
void* busy_block(pagesift::device_pool& pool, cudaStream_t stream, std::size_t bytes) {
  void* const p = pool.allocate(bytes, stream);
  REQUIRE(cudaMemsetAsync(p, 0, bytes, stream) == cudaSuccess);
  pool.deallocate(p, bytes, stream);
  REQUIRE(fake_cuda::pending(stream));
  return p;
}

TEST_CASE("a vector's memory is safe for the default stream, where Thrust fills it") {
  const side_stream side;
  pagesift::device_pool pool;
  void* const busy = busy_block(pool, side.get(), 4000);
  bool filled = false;
  fake_cuda::on_call("cudaLaunchKernel", [&] {
    filled = true;
    CHECK_FALSE(fake_cuda::pending(side.get()));
  });
  const vector v(1000, 1, allocator{pool, side.get()});
  fake_cuda::on_call("cudaLaunchKernel", {});
  CHECK(filled);
  CHECK(thrust::raw_pointer_cast(v.data()) == busy);
}

TEST_CASE("a vector on the default stream waits for no stream before it is filled") {
  const side_stream side;
  pagesift::device_pool pool;
  { const vector warm(1000, 1, allocator{pool}); }  // growth may wait
  REQUIRE(cudaMemsetAsync(nullptr, 0, 0, side.get()) == cudaSuccess);
  fake_cuda::clear_log();
  for (const cudaStream_t stream : {cudaStream_t{nullptr}, cudaStreamLegacy}) {
    const vector v(1000, 1, allocator{pool, stream});
  }
  CHECK(fake_cuda::count("cuEventSynchronize") == 0);
  CHECK(fake_cuda::pending(side.get()));
}

TEST_CASE("a vector is freed in the order of its allocator's stream") {
  const side_stream side;
  const side_stream other;
  pagesift::device_pool pool;
  const int* memory = nullptr;
  {
    const vector v(1000, 1, allocator{pool, side.get()});
    memory = thrust::raw_pointer_cast(v.data());
    REQUIRE(cudaMemsetAsync(nullptr, 0, 0, side.get()) == cudaSuccess);
  }
  CHECK(pool.allocate(4000, other.get()) != memory);
  CHECK(pool.allocate(4000, side.get()) == memory);
}

TEST_CASE("allocators of different streams are not equal") {
  const side_stream side;
  pagesift::device_pool pool;
  CHECK(allocator{pool} != allocator{pool, side.get()});
  CHECK(allocator{pool, side.get()} == allocator{pool, side.get()});
}

TEST_CASE("a wait that fails is an error of its own, and the memory is back in the pool") {
  const side_stream side;
  pagesift::device_pool pool;
  allocator a{pool, side.get()};
  for (const char* const call : {"cuEventCreate", "cuEventRecord", "cuEventSynchronize"}) {
    fake_cuda::fail(call, cudaErrorLaunchFailure);
    try {
      (void)a.allocate(1000);
      FAIL("the call was made to fail");
    } catch (const pagesift::backend_error& e) {
      CHECK(e.code() == cudaErrorLaunchFailure);
    }
    CHECK(pool.stats().in_use == 0);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
  }
  a.deallocate(a.allocate(1000), 1000);
  CHECK(pool.stats().in_use == 0);
}

TEST_CASE("a vector stays with the device on which it first took memory") {
  pagesift::device_pool& first = pagesift::device_pool::default_pool(0);
  pagesift::device_pool& second = pagesift::device_pool::default_pool(1);
  const std::size_t in_use_first = first.stats().in_use;
  const std::size_t in_use_second = second.stats().in_use;
  {
    vector v;
    REQUIRE(cudaSetDevice(1) == cudaSuccess);
    v.resize(1000);
    CHECK(first.stats().in_use == in_use_first);
    CHECK(second.stats().in_use > in_use_second);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    const vector copy_of_allocator{v.get_allocator()};
    CHECK(copy_of_allocator.get_allocator() == v.get_allocator());
  }
  CHECK(first.stats().in_use == in_use_first);
  CHECK(second.stats().in_use == in_use_second);
  CHECK(first.stats().rejected_frees + second.stats().rejected_frees == 0);
}

TEST_CASE("a vector made before the runtime works is harmless until it takes memory") {
  fake_cuda::refuse_runtime(cudaErrorNoDevice);
  CHECK_NOTHROW(vector{});
  fake_cuda::refuse_runtime(cudaSuccess);
  (void)cudaGetLastError();
}

}  // namespace
}  // namespace pagesift_test
