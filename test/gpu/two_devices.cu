// What needs two devices: a pool of one while the other is current.
#include "late_write.hpp"
#include "missing.hpp"

#include <pagesift/pagesift.hpp>

#include <thrust/sort.h>

#include <algorithm>
#include <memory>
#include <vector>

using pagesift::device_pool;
using pagesift::mebibyte;

const char* missing_for_this_program() {
  int devices = 0;
  const bool two = cudaGetDeviceCount(&devices) == cudaSuccess && devices >= 2;
  return two ? nullptr : "there are fewer than two CUDA devices";
}

namespace {

/// Makes a device current in its scope; at its end it must still be, and no error be left.
class current_device {
 public:
  explicit current_device(int device) : device_{device} {
    gpu::require(cudaGetDevice(&before_));
    gpu::require(cudaSetDevice(device));
  }
  ~current_device() {
    int now = -1;
    CHECK(cudaGetDevice(&now) == cudaSuccess);
    CHECK(now == device_);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    (void)cudaSetDevice(before_);
  }
  current_device(const current_device&) = delete;
  current_device& operator=(const current_device&) = delete;

 private:
  int device_;
  int before_ = 0;
};

int device_of(const void* p) {
  cudaPointerAttributes attributes{};
  gpu::require(cudaPointerGetAttributes(&attributes, p));
  return attributes.device;
}

pagesift::pool_options on_device(int device) {
  pagesift::pool_options options = gpu::eager_seals();
  options.device = device;
  return options;
}

}  // namespace

TEST_CASE("a block freed while another device is current is ordered like any") {
  constexpr std::size_t bytes = 4 * mebibyte;
  const current_device home{0};
  gpu::prepare();
  device_pool pool{on_device(0)};
  gpu::stream first;
  gpu::stream second;
  gpu::gate gate;
  for (int round = 0; round < 20; ++round) {
    void* const p = pool.allocate(bytes, first);
    gate.close(first);
    gpu::fill(p, bytes, gpu::old_pattern, first);
    void* q = nullptr;
    {
      const current_device elsewhere{1};
      pool.deallocate(p, bytes, first);
      q = pool.allocate(bytes, second);
    }
    gpu::fill(q, bytes, gpu::new_pattern, second);
    gpu::give_a_chance(second);
    gate.open();
    gpu::require(cudaDeviceSynchronize());
    gpu::check(q, bytes, gpu::new_pattern, second);
    second.synchronize();
    const current_device elsewhere{1};
    pool.deallocate(q, bytes, second);
  }
  CHECK_FALSE(gpu::mismatch());
  CHECK_FALSE(gate.expired());
  CHECK(pool.stats().rejected_frees == 0);
}

TEST_CASE("every call of a pool works while another device is current, and leaves it so") {
  const current_device home{0};
  auto pool = std::make_unique<device_pool>(on_device(0));
  gpu::stream first;
  gpu::stream second;
  {
    const current_device elsewhere{1};
    const auto bound = pool->on(first);
    bound.deallocate(bound.allocate(mebibyte), mebibyte);
    for (const std::size_t bytes : {std::size_t{256}, 40 * mebibyte}) {
      void* const p = pool->allocate(bytes, first);
      CHECK(device_of(p) == 0);
      pool->record_use(p, bytes, second);
      pool->deallocate(p, bytes, first);
      pool->deallocate_sync(pool->allocate_sync(bytes), bytes);
    }
    pool->deallocate(pool->allocate(mebibyte, nullptr), mebibyte, nullptr);
    pool->retire(first);
    pool->end_batch();
    pool->trim();
    CHECK(pool->stats().held == 0);
    pool->deallocate(pool->allocate(mebibyte, second), mebibyte, second);
    pool.reset();
  }
}

TEST_CASE("a vector and a buffer go back to their own device, whichever is current") {
  const current_device home{0};
  device_pool& first = device_pool::default_pool(0);
  device_pool& second = device_pool::default_pool(1);
  const std::size_t in_use = first.stats().in_use;
  {
    auto vector = std::make_unique<pagesift::device_vector<int>>(100000, 7);
    auto buffer = std::make_unique<pagesift::device_buffer<int>>(100000);
    CHECK(device_of(thrust::raw_pointer_cast(vector->data())) == 0);
    CHECK(first.stats().in_use > in_use);
    const current_device elsewhere{1};
    vector.reset();
    buffer.reset();
  }
  CHECK(first.stats().in_use == in_use);
  CHECK(first.stats().rejected_frees + second.stats().rejected_frees == 0);
}

TEST_CASE("an algorithm takes its storage from the pool of the device that is current") {
  const current_device home{0};
  const std::uint64_t requests = [] {
    const pagesift::pool_stats stats = device_pool::default_pool(0).stats();
    return stats.hits + stats.misses;
  }();
  const current_device elsewhere{1};
  std::vector<int> host(100003);
  for (std::size_t i = 0; i < host.size(); ++i) {
    host[i] = static_cast<int>(i * 7919 % 100003);
  }
  pagesift::device_buffer<int> keys{host.size()};
  CHECK(device_of(keys.data()) == 1);
  keys.scatter(host);
  thrust::sort(pagesift::device, keys.begin(), keys.end());
  keys.gather(host);
  CHECK(std::is_sorted(host.begin(), host.end()));
  CHECK(device_pool::default_pool(1).stats().in_use > 0);
  const pagesift::pool_stats untouched = device_pool::default_pool(0).stats();
  CHECK(untouched.hits + untouched.misses == requests);
}

TEST_CASE("pools of two devices used by one thread in turn keep to their own memory") {
  const current_device home{0};
  device_pool first{on_device(0)};
  device_pool second{on_device(1)};
  for (int i = 0; i < 100; ++i) {
    const current_device either{i % 2};
    void* const p = first.allocate(mebibyte, nullptr);  // one handle, a stream on each device
    void* const q = second.allocate(mebibyte, nullptr);
    CHECK(device_of(p) == 0);
    CHECK(device_of(q) == 1);
    second.deallocate(q, mebibyte, nullptr);
    first.deallocate(p, mebibyte, nullptr);
  }
  CHECK(first.stats().rejected_frees + second.stats().rejected_frees == 0);
}
