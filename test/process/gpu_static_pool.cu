// Static pools with idle memory, static and thread_local vectors of theirs and of the default pool,
// work that is not waited for, and an exit from a thread while another goes on.
#include "gpu_start.hpp"

#include <pagesift/pagesift.hpp>

#include <thrust/fill.h>
#include <thrust/sort.h>

#include <atomic>
#include <memory>
#include <thread>

namespace {

pagesift::device_vector<int> of_the_default_pool;
std::unique_ptr<pagesift::device_pool> static_pool;
thread_local pagesift::device_vector<int> of_a_thread;

pagesift::device_pool& late_pool() {
  static pagesift::device_pool pool;
  return pool;
}

void work() {
  static pagesift::device_vector<int> of_the_late_pool{pagesift::allocator<int>{late_pool()}};
  of_the_late_pool.resize(100000, 1);
  of_the_default_pool.resize(1000000, 2);
  of_a_thread.resize(1000, 3);
  static_pool = std::make_unique<pagesift::device_pool>();
  void* const idle = static_pool->allocate(pagesift::mebibyte * 100, nullptr);
  static_pool->deallocate(idle, pagesift::mebibyte * 100, nullptr);
  thrust::sort(pagesift::device_nosync, of_the_default_pool.begin(), of_the_default_pool.end());
}

}  // namespace

int main() {
  skip_without_device();
  work();
  std::atomic<bool> busy{false};
  std::thread{[&busy] {
    cudaStream_t stream = nullptr;
    (void)cudaStreamCreate(&stream);
    for (std::size_t i = 0;; ++i) {
      const std::size_t bytes = (1 + i % 40) * pagesift::mebibyte;
      void* const p = late_pool().allocate(bytes, stream);
      late_pool().deallocate(p, bytes, stream);
      busy = busy || i > 100;
    }
  }}.detach();
  while (!busy) {
    std::this_thread::yield();
  }
  std::exit(0);
}
