// Where the jobs get device memory from: Thrust's default, or a pool. Both give buffers with the
// same members, and a policy for Thrust's algorithms.
#pragma once

#include <pagesift/pagesift.hpp>

#include <thrust/copy.h>
#include <thrust/device_free.h>
#include <thrust/device_malloc.h>
#include <thrust/execution_policy.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

namespace squares {

/// The default allocator has no device memory left. (A pool says so with its own
/// `pagesift::out_of_memory`.)
class device_memory_short : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thrust's default: cudaMalloc and cudaFree on CUDA, malloc and free on the host.
class default_memory {
 public:
  static constexpr const char* name = "default";

  /// Doubles in device memory. The `default_memory` must outlive it.
  class buffer {
   public:
    buffer(default_memory& owner, std::size_t count)
        : owner_{owner}, count_{count}, first_{owner.take(count)} {}
    buffer(const buffer&) = delete;
    buffer& operator=(const buffer&) = delete;
    ~buffer() { owner_.give_back(first_, count_); }

    [[nodiscard]] thrust::device_ptr<double> begin() const { return first_; }
    [[nodiscard]] thrust::device_ptr<double> end() const {
      return first_ + static_cast<std::ptrdiff_t>(count_);
    }
    void scatter(const double* host, std::size_t count) {
      thrust::copy(host, host + count, first_);
    }
    void gather(double* host, std::size_t /*count*/) const { thrust::copy(begin(), end(), host); }

   private:
    default_memory& owner_;
    std::size_t count_;
    thrust::device_ptr<double> first_;
  };

  [[nodiscard]] buffer make(std::size_t count) { return {*this, count}; }
  [[nodiscard]] auto policy() const { return thrust::device; }

  /// In a pool's terms: nothing is ever idle, every request reaches the device.
  [[nodiscard]] const pagesift::pool_stats& stats() const { return stats_; }

 private:
  thrust::device_ptr<double> take(std::size_t count) {
    const std::size_t bytes = count * sizeof(double);
    const thrust::device_ptr<double> first = allocate(count);
    if (first.get() == nullptr) {
      throw device_memory_short{
          "too little device memory: Thrust's default allocator has not got " +
          std::to_string(bytes) + " bytes"};
    }
    ++stats_.misses;
    ++stats_.backend_allocations;
    stats_.in_use += bytes;
    stats_.held = stats_.in_use;
    stats_.peak_held = stats_.peak_in_use = std::max(stats_.peak_in_use, stats_.in_use);
    return first;
  }

  /// Null where there is no memory: Thrust throws on CUDA, and returns null on the host.
  static thrust::device_ptr<double> allocate(std::size_t count) {
    try {
      return thrust::device_malloc<double>(count);
    } catch (const std::bad_alloc&) {
      return {};
    }
  }

  void give_back(thrust::device_ptr<double> first, std::size_t count) noexcept {
    try {
      thrust::device_free(first);
    } catch (const std::exception&) {  // the device is broken: what it did before has said so
    }
    ++stats_.backend_releases;
    stats_.in_use -= count * sizeof(double);
    stats_.held = stats_.in_use;
  }

  pagesift::pool_stats stats_;
};

/// A pool of pagesift.
class pool_memory {
 public:
  static constexpr const char* name = "pool";

  explicit pool_memory(std::size_t limit_bytes) : pool_{limited_to(limit_bytes)} {}

  [[nodiscard]] auto make(std::size_t count) {
    return pagesift::device_buffer<double>{count, pool_};
  }
  [[nodiscard]] auto policy() { return pool_.policy(); }
  [[nodiscard]] pagesift::pool_stats stats() const { return pool_.stats(); }

 private:
  static pagesift::pool_options limited_to(std::size_t bytes) {
    pagesift::pool_options options;
    options.limit_bytes = bytes;
    return options;
  }

  pagesift::device_pool pool_;
};

}  // namespace squares
