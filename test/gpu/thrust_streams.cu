// Thrust through one pool from several streams and threads.
#include "device_work.hpp"

#include <pagesift/pagesift.hpp>

#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

using pagesift::mebibyte;

namespace {

using buffer = pagesift::device_buffer<int>;

constexpr std::size_t n = 300'007;

std::vector<int> random_ints(unsigned seed) {
  std::minstd_rand random{seed};
  std::vector<int> values(n);
  for (int& value : values) {
    value = static_cast<int>(random() % 1000);
  }
  return values;
}

/// Host data, what algorithms make of it, and room for it on the device, all of one stream.
class workload {
 public:
  workload(pagesift::device_pool& pool, cudaStream_t stream, unsigned seed)
      : stream_{stream}, host_{random_ints(seed)}, in_{n, pool, stream}, out_{n, pool, stream} {
    sum_ = std::accumulate(host_.begin(), host_.end(), 0);
    sorted_ = host_;
    std::sort(sorted_.begin(), sorted_.end());
    prefix_sums_.resize(n);
    std::partial_sum(sorted_.begin(), sorted_.end(), prefix_sums_.begin());
  }

  /// Submits a sort and a scan. With a policy that does not wait, both are still running after it.
  template <typename Policy>
  void submit(const Policy& policy) {
    in_.scatter(host_);
    thrust::sort(policy, in_.begin(), in_.end());
    thrust::inclusive_scan(policy, in_.begin(), in_.end(), out_.begin());
  }

  template <typename Policy>
  [[nodiscard]] bool right(const Policy& policy) {
    const int sum = thrust::reduce(policy, in_.begin(), in_.end());
    std::vector<int> sorted(n);
    std::vector<int> prefix_sums(n);
    in_.gather(sorted);
    out_.gather(prefix_sums);
    return sum == sum_ && sorted == sorted_ && prefix_sums == prefix_sums_;
  }

  [[nodiscard]] cudaStream_t stream() const { return stream_; }

 private:
  cudaStream_t stream_;
  std::vector<int> host_;
  int sum_ = 0;
  std::vector<int> sorted_;
  std::vector<int> prefix_sums_;
  buffer in_;
  buffer out_;
};

TEST_CASE("a sort that has not begun keeps its memory from other streams") {
  gpu::prepare();
  gpu::stream sorting;
  gpu::stream other;
  pagesift::device_pool pool;
  workload work{pool, sorting, 1};
  const auto policy = pool.policy_nosync(sorting);
  work.submit(policy);  // loads the kernels: that would wait behind the gate
  REQUIRE(work.right(policy));
  pool.deallocate(pool.allocate(1, other), 1, other);

  const std::size_t sort_bytes = n * sizeof(int);
  work.submit(policy);
  REQUIRE(work.right(policy));
  buffer keys{n, pool, sorting};
  keys.scatter(random_ints(1));
  gpu::gate gate;
  gate.close(sorting);
  thrust::sort(policy, keys.begin(), keys.end());
  CHECK_FALSE(gpu::idle(sorting));

  // More blocks of about the size of the sort's temporary storage than the sort can have used.
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) {
    blocks.push_back(pool.allocate(sort_bytes + sort_bytes / 16, other));
    gpu::fill(blocks.back(), sort_bytes, 0x5a5a5a5a, other);
  }
  gpu::give_a_chance(other);
  gate.open();
  gpu::require(cudaDeviceSynchronize());
  for (void* const block : blocks) {
    gpu::check(block, sort_bytes, 0x5a5a5a5a, other);
    pool.deallocate(block, sort_bytes + sort_bytes / 16, other);
  }
  gpu::require(cudaDeviceSynchronize());
  CHECK_FALSE(gpu::mismatch());
  CHECK_FALSE(gate.expired());

  std::vector<int> expected = random_ints(1);
  std::vector<int> sorted(n);
  std::sort(expected.begin(), expected.end());
  keys.gather(sorted);
  CHECK(sorted == expected);
}

TEST_CASE("one thread drives many streams without waiting, and every result is right") {
  constexpr unsigned streams = 6;
  pagesift::device_pool pool;
  {
    std::vector<gpu::stream> handles(streams);
    std::vector<workload> work;
    for (unsigned i = 0; i < streams; ++i) {
      work.emplace_back(pool, handles[i], i + 1);
    }
    for (int round = 0; round < 30; ++round) {
      for (workload& each : work) {
        each.submit(pool.policy_nosync(each.stream()));
      }
      for (workload& each : work) {
        CHECK(each.right(pool.policy_nosync(each.stream())));
      }
    }
  }
  CHECK(pool.stats().in_use == 0);
  CHECK(pool.stats().rejected_frees == 0);
  // A sort that lost its temporary storage would have lost 2 MiB, 180 times.
  CHECK(pool.stats().peak_held <= 256 * mebibyte);
}

TEST_CASE("several threads, each on its stream, share a pool, and every result is right") {
  constexpr unsigned count = 4;
  pagesift::device_pool pool;
  std::vector<char> right(count, 0);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < count; ++t) {
    threads.emplace_back([&pool, &right, t] {
      const gpu::stream own;
      workload work{pool, own, t + 1};
      bool all = true;
      for (int round = 0; round < 20; ++round) {
        const bool waits = round % 2 == 0;
        waits ? work.submit(pool.policy(own)) : work.submit(pool.policy_nosync(own));
        all = (waits ? work.right(pool.policy(own)) : work.right(pool.policy_nosync(own))) && all;
      }
      right[t] = all ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(right == std::vector<char>(count, 1));
  CHECK(pool.stats().in_use == 0);
  CHECK(pool.stats().rejected_frees == 0);
}

TEST_CASE("the pool's own handle in Thrust's policies works on a stream of the user's") {
  pagesift::device_pool pool;
  {
    gpu::stream own;
    auto handle = pool.handle();
    workload work{pool, own, 3};
    work.submit(thrust::cuda::par(handle).on(own));
    CHECK(work.right(thrust::cuda::par(pool.handle()).on(own)));
    work.submit(thrust::cuda::par_nosync(handle).on(own));
    CHECK(work.right(thrust::cuda::par_nosync(pool.handle()).on(own)));
    const std::uint64_t taken = pool.stats().backend_allocations;
    work.submit(thrust::cuda::par_nosync(handle).on(own));
    CHECK(work.right(thrust::cuda::par(handle).on(own)));
    CHECK(pool.stats().backend_allocations == taken);
    CHECK(pool.stats().fences == 0);  // the stream was known: no free had to wait for the device
  }
  CHECK(pool.stats().in_use == 0);
}

TEST_CASE("a vector on a busy stream is filled after that stream's last use of its memory") {
  gpu::prepare();
  gpu::stream busy;
  pagesift::device_pool pool;
  for (const std::size_t elements : {std::size_t{1000}, std::size_t{1'000'000}}) {
    const std::size_t bytes = elements * sizeof(int);
    void* const p = pool.allocate(bytes, busy);
    gpu::delay(busy);
    gpu::fill(p, bytes, 0x01d01d01, busy);
    pool.deallocate(p, bytes, busy);

    const pagesift::device_vector<int> v(elements, 7, pagesift::allocator<int>{pool, busy});
    CHECK(thrust::raw_pointer_cast(v.data()) == p);
    gpu::require(cudaDeviceSynchronize());
    std::vector<int> host(elements);
    thrust::copy(v.begin(), v.end(), host.begin());
    CHECK(host == std::vector<int>(elements, 7));
  }
}

TEST_CASE("a buffer on a busy stream is filled after that stream's last use of its memory") {
  gpu::prepare();
  gpu::stream busy;
  pagesift::device_pool pool;
  const std::vector<int> values = random_ints(5);
  void* const p = pool.allocate(n * sizeof(int), busy);
  gpu::delay(busy);
  gpu::fill(p, n * sizeof(int) / 4 * 4, 0x01d01d01, busy);
  pool.deallocate(p, n * sizeof(int), busy);

  buffer device{n, pool, busy};
  CHECK(device.data() == p);
  device.scatter(values);
  CHECK(gpu::idle(busy));
  std::vector<int> host(n);
  device.gather(host);
  CHECK(host == values);
}

TEST_CASE("an algorithm on a capturing stream is captured, a copy from the host is refused") {
  gpu::stream own;
  pagesift::device_pool pool;
  buffer keys{n, pool, own};
  keys.scatter(random_ints(6));
  thrust::sort(pool.policy(own), keys.begin(), keys.end());
  gpu::require(cudaStreamBeginCapture(own, cudaStreamCaptureModeGlobal));
  thrust::sort(pool.policy_nosync(own), keys.begin(), keys.end());
  CHECK_THROWS_AS(keys.scatter(random_ints(6)), pagesift::backend_error);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(own, &graph) == cudaSuccess);
  CHECK(graph != nullptr);
  gpu::require(cudaGraphDestroy(graph));
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

}  // namespace
