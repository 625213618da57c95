// Runs the body of a test with every policy of the device system: own pool and default pool,
// default stream and another one, waiting and not. The same source is compiled for Thrust's CPP,
// OMP and TBB systems and, by nvcc, for CUDA.
#pragma once

#include <pagesift/pagesift.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <random>
#include <vector>

#if defined(__CUDACC__)
#define PAGESIFT_TEST_FUNCTOR __host__ __device__
#else
#define PAGESIFT_TEST_FUNCTOR
#endif

namespace pagesift_test {

/// A stream other than the default one, where the system has such a thing. On CUDA it does not
/// synchronise with the default stream, so that work on the wrong one is not put in order by luck.
class side_stream {
 public:
#if defined(PAGESIFT_DEVICE_IS_CUDA)
  side_stream() {
    REQUIRE(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess);
  }
  ~side_stream() {
    (void)cudaStreamSynchronize(stream_);
    (void)cudaStreamDestroy(stream_);
  }
#else
  side_stream() = default;
#endif
  side_stream(const side_stream&) = delete;
  side_stream& operator=(const side_stream&) = delete;

  [[nodiscard]] pagesift::stream get() const { return stream_; }

 private:
  pagesift::stream stream_{};
};

/// Where the data of a test lives: memory of the policy's pool, in the order of its stream.
class place {
 public:
  place(pagesift::device_pool& pool, pagesift::stream stream) : pool_{pool}, stream_{stream} {}

  template <typename T>
  [[nodiscard]] pagesift::device_buffer<T> buffer(std::size_t count) const {
    return pagesift::device_buffer<T>{count, pool_, stream_};
  }

  template <typename T>
  [[nodiscard]] pagesift::device_buffer<T> upload(const std::vector<T>& host) const {
    auto device = buffer<T>(host.size());
    device.scatter(host);
    return device;
  }

 private:
  pagesift::device_pool& pool_;
  pagesift::stream stream_;
};

template <typename T>
[[nodiscard]] std::vector<T> download(const pagesift::device_buffer<T>& device) {
  std::vector<T> host(device.size());
  device.gather(host);
  return host;
}

/// The first `count` elements.
template <typename T>
[[nodiscard]] std::vector<T> download(const pagesift::device_buffer<T>& device,
                                      std::ptrdiff_t count) {
  std::vector<T> host = download(device);
  REQUIRE(count >= 0);
  REQUIRE(static_cast<std::size_t>(count) <= host.size());
  host.resize(static_cast<std::size_t>(count));
  return host;
}

/// The first time may take memory from the device, the second must find it in the pool, and both
/// give all of it back.
template <typename Policy, typename Body>
void twice(pagesift::device_pool& pool, pagesift::stream stream, const Policy& policy, Body& body) {
  const place at{pool, stream};
  const std::size_t in_use = pool.stats().in_use;
  body(policy, at);
  const pagesift::pool_stats warm = pool.stats();
  body(policy, at);
  const pagesift::pool_stats steady = pool.stats();
  CHECK(steady.backend_allocations == warm.backend_allocations);
  CHECK(steady.in_use == in_use);
  CHECK(steady.rejected_frees == 0);
}

/// Calls `body(policy, place)`, a generic lambda, twice with every policy. The host's systems have
/// one stream and always wait.
template <typename Body>
void with_each_policy(Body&& body) {
  pagesift::device_pool own;
  pagesift::device_pool& common = pagesift::device_pool::default_pool();
  twice(own, {}, own.policy(), body);
  twice(common, {}, pagesift::device, body);
#if defined(PAGESIFT_DEVICE_IS_CUDA)
  const side_stream side;
  twice(own, side.get(), own.policy(side.get()), body);
  twice(own, side.get(), own.policy_nosync(side.get()), body);
  twice(common, side.get(), pagesift::device.on(side.get()), body);
  twice(common, {}, pagesift::device_nosync, body);
  twice(common, side.get(), pagesift::device_nosync.on(side.get()), body);
#endif
}

/// Empty, a few, not a multiple of anything, more than one tile of CUB's kernels.
inline const std::vector<std::size_t> sizes{0, 1, 2, 33, 1023, 20'011};

/// Numbers from 0 to `end` - 1, the same at every run.
[[nodiscard]] inline std::vector<int> random_ints(std::size_t count, int end, unsigned seed = 1) {
  std::minstd_rand random{seed};
  std::vector<int> values(count);
  for (int& value : values) {
    value = static_cast<int>(random() % static_cast<unsigned>(end));
  }
  return values;
}

/// An order that Thrust does not know, so that it sorts by merging.
struct by_last_digits {
  PAGESIFT_TEST_FUNCTOR bool operator()(int a, int b) const { return a % 1000 < b % 1000; }
};

struct is_odd {
  PAGESIFT_TEST_FUNCTOR bool operator()(int x) const { return x % 2 != 0; }
};

struct square {
  PAGESIFT_TEST_FUNCTOR int operator()(int x) const { return x * x; }
};

}  // namespace pagesift_test
