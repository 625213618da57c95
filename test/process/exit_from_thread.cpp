// One thread calls exit while others allocate and free, each as if nothing had happened.
#include "exit_scene.hpp"

#include <pagesift/core/bytes.hpp>

#include <atomic>
#include <thread>

namespace {

pool_type static_pool;
std::atomic<int> busy{0};

void churn(pool_type& pool) {
  for (std::size_t i = 0;; ++i) {
    const owner some{pool, (1 + i % 9) * pagesift::mebibyte};
    const owner few{pool, 256 * (1 + i % 5)};
    if (i % 50 == 0) {
      pool.trim();
    }
    busy += i == 100 ? 1 : 0;
  }
}

}  // namespace

int main() {
  for (int i = 0; i < 2; ++i) {
    std::thread{[] { churn(static_pool); }}.detach();
    std::thread{[] { churn(pool_type::default_pool()); }}.detach();
  }
  std::thread{[] {
    while (busy < 4) {
      std::this_thread::yield();
    }
    std::exit(0);
  }}.join();
  return 1;
}
