// Many threads, each with its own stream, on one pool.
#include "late_write.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

using pagesift::cuda_pool;
using pagesift::kibibyte;
using pagesift::mebibyte;

namespace {

constexpr unsigned thread_count = 16;
constexpr int operations = 1500;
constexpr std::size_t live_blocks = 8;

struct held_block {
  void* p = nullptr;
  std::size_t bytes = 0;
  unsigned pattern = 0;
};

/// Takes and gives back blocks in random order. Each is filled when it is taken and checked just
/// before it is given back, so that anything else written to it meanwhile shows.
template <typename NextSize>
void take_and_give_back(cuda_pool& pool, unsigned thread, NextSize&& next_size) {
  const gpu::stream stream;
  std::mt19937 random{thread};
  std::array<held_block, live_blocks> blocks;
  const auto give_back = [&](held_block& b) {
    if (b.p != nullptr) {
      gpu::check(b.p, b.bytes, b.pattern, stream);
      pool.deallocate(b.p, b.bytes, stream);
    }
  };
  for (unsigned i = 0; i < operations; ++i) {
    held_block& b = blocks[random() % live_blocks];
    give_back(b);
    b.bytes = next_size(random);
    b.pattern = thread * operations + i + 1;
    b.p = pool.allocate(b.bytes, stream);
    gpu::fill(b.p, b.bytes, b.pattern, stream);
  }
  std::for_each(blocks.begin(), blocks.end(), give_back);
  stream.synchronize();
}

template <typename NextSize>
void run_threads(cuda_pool& pool, NextSize&& next_size) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < thread_count; ++i) {
    threads.emplace_back([&pool, &next_size, i] { take_and_give_back(pool, i, next_size); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK_FALSE(gpu::mismatch());
  CHECK(pool.stats().in_use == 0);
  CHECK(pool.stats().rejected_frees == 0);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

}  // namespace

TEST_CASE("16 threads with a stream each never see each other's writes") {
  gpu::prepare();
  cuda_pool pool;
  run_threads(pool, [](std::mt19937& random) { return (random() % (mebibyte / 4) + 1) * 4; });
}

TEST_CASE("16 threads that take memory from each other never see each other's writes") {
  gpu::prepare();
  pagesift::pool_options options = gpu::eager_seals();
  options.limit_bytes = 48 * mebibyte;  // 128 blocks in use at most are 32 MiB
  cuda_pool pool{options};
  run_threads(pool, [](std::mt19937&) { return 256 * kibibyte; });
}

namespace {

/// A host function in a stream waits for a thread; after 20 s it gives up and says so.
struct patient_wait {
  std::atomic<bool> go_on{false};
  std::atomic<bool> given_up{false};

  static void CUDART_CB wait(void* self) {
    auto& wait = *static_cast<patient_wait*>(self);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (!wait.go_on) {
      if (std::chrono::steady_clock::now() > until) {
        wait.given_up = true;
        return;
      }
      std::this_thread::yield();
    }
  }
};

}  // namespace

TEST_CASE("a thread uses a pool while another waits in it for work that waits for that thread") {
  gpu::prepare();
  pagesift::pool_options options;
  options.limit_bytes = 96 * mebibyte;
  cuda_pool pool{options};
  const gpu::stream first;
  const gpu::stream second;
  const gpu::stream third;
  patient_wait host;
  std::atomic<bool> asking{false};
  void* const p = pool.allocate(40 * mebibyte, first);
  gpu::require(cudaLaunchHostFunc(first, &patient_wait::wait, &host));
  gpu::fill(p, 40 * mebibyte, gpu::old_pattern, first);
  pool.deallocate(p, 40 * mebibyte, first);
  std::thread other{[&] {
    while (!asking) {
      std::this_thread::yield();
    }
    for (int i = 0; i < 2000; ++i) {
      pool.deallocate(pool.allocate(4096, third), 4096, third);
    }
    host.go_on = true;
  }};
  asking = true;
  void* const q = pool.allocate(80 * mebibyte, second);  // only with the pages of the first
  gpu::fill(q, 80 * mebibyte, gpu::new_pattern, second);
  other.join();
  gpu::require(cudaDeviceSynchronize());
  gpu::check(q, 80 * mebibyte, gpu::new_pattern, second);
  second.synchronize();
  CHECK_FALSE(host.given_up);
  CHECK_FALSE(gpu::mismatch());
  pool.deallocate(q, 80 * mebibyte, second);
}
