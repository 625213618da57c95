// The pool over host memory: real memory, so its contents can be checked.
#include <pagesift/pool/host_pool.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

using pagesift::host_pool;
using pagesift::host_stream;
using pagesift::mebibyte;

namespace {

/// A block filled with one value from end to end.
class filled_block {
 public:
  filled_block(host_pool& pool, std::size_t bytes, std::size_t alignment, unsigned char value)
      : memory_{static_cast<unsigned char*>(pool.allocate(bytes, alignment, host_stream{}))},
        bytes_{bytes},
        value_{value} {
    std::memset(memory_, value_, bytes_);
  }

  /// Whether every byte is the value: the first is, and each is as the one after it.
  [[nodiscard]] bool intact() const {
    return bytes_ == 0 ||
           (memory_[0] == value_ && std::memcmp(memory_, memory_ + 1, bytes_ - 1) == 0);
  }

  [[nodiscard]] bool aligned(std::size_t alignment) const {
    return reinterpret_cast<std::uintptr_t>(memory_) % alignment == 0;
  }

  void give_back(host_pool& pool) const { pool.deallocate(memory_, bytes_, host_stream{}); }

 private:
  unsigned char* memory_;
  std::size_t bytes_;
  unsigned char value_;
};

/// Allocates, fills, checks and frees blocks of random sizes.
bool all_intact(host_pool& pool, std::uint64_t seed, int operations) {
  std::mt19937_64 random{seed};
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  std::vector<filled_block> blocks;
  bool intact = true;
  for (int i = 0; i < operations; ++i) {
    if (blocks.size() < 30 && below(2) == 0) {
      const std::size_t bytes = below(std::size_t{1} << (1 + below(22)));
      const std::size_t alignment = std::size_t{1} << below(22);
      blocks.emplace_back(pool, bytes, alignment, static_cast<unsigned char>(random()));
      intact = intact && blocks.back().aligned(alignment);
    } else if (!blocks.empty()) {
      std::swap(blocks[below(blocks.size())], blocks.back());
      intact = intact && blocks.back().intact();
      blocks.back().give_back(pool);
      blocks.pop_back();
    }
  }
  for (const filled_block& b : blocks) {
    intact = intact && b.intact();
    b.give_back(pool);
  }
  return intact;
}

}  // namespace

TEST_CASE("blocks of host memory do not overlap and keep what is written") {
  host_pool pool;
  CHECK(all_intact(pool, 1, 2000));
  CHECK(pool.stats().in_use == 0);
  pool.trim();
  CHECK(pool.stats().held == 0);
}

TEST_CASE("threads share a pool of host memory") {
  host_pool pool;
  std::vector<std::thread> threads;
  std::vector<char> intact(4, 0);
  for (std::size_t i = 0; i < intact.size(); ++i) {
    threads.emplace_back([&, i] { intact[i] = all_intact(pool, i, 500) ? 1 : 0; });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(intact == std::vector<char>(4, 1));
  CHECK(pool.stats().in_use == 0);
}

TEST_CASE("a second request of the same size takes no host memory") {
  host_pool pool;
  for (const std::size_t bytes : {std::size_t{100}, 5 * mebibyte}) {
    void* const p = pool.allocate(bytes, host_stream{});
    pool.deallocate(p, bytes, host_stream{});
    const std::uint64_t before = pool.stats().backend_allocations;
    void* const q = pool.allocate(bytes, host_stream{});
    CHECK(q == p);
    CHECK(pool.stats().backend_allocations == before);
    pool.deallocate(q, bytes, host_stream{});
  }
}

TEST_CASE("a large range is whole again when the small blocks cut from it are free") {
  host_pool pool;
  constexpr std::size_t large = 400'000'000;
  void* const first = pool.allocate(large, host_stream{});
  pool.deallocate(first, large, host_stream{});
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> small;
    for (std::size_t bytes = 256; bytes <= 4 * mebibyte; bytes *= 2) {
      small.push_back(pool.allocate(bytes, host_stream{}));
    }
    std::size_t bytes = 256;
    for (void* const p : small) {
      pool.deallocate(p, bytes, host_stream{});
      bytes *= 2;
    }
    void* const again = pool.allocate(large, host_stream{});
    CHECK(again == first);
    pool.deallocate(again, large, host_stream{});
  }
  CHECK(pool.stats().backend_allocations == 1);
}

TEST_CASE("too little host memory is said to be host memory") {
  pagesift::pool_options options;
  options.limit_bytes = 8 * mebibyte;
  host_pool pool{options};
  std::string text;
  try {
    (void)pool.allocate(9 * mebibyte, host_stream{});
  } catch (const pagesift::out_of_memory& e) {
    text = e.what();
  }
  CHECK(text.find("out of host memory") != std::string::npos);
  CHECK(text.find(std::to_string(9 * mebibyte)) != std::string::npos);
}

TEST_CASE("a host pool has device 0 only") {
  pagesift::pool_options options;
  options.device = 1;
  CHECK_THROWS_AS(host_pool{options}, pagesift::invalid_argument);
}

TEST_CASE("the default host pool is one, and a handle that names nothing names it") {
  host_pool& pool = host_pool::default_pool();
  CHECK(&pool == &host_pool::default_pool(0));
  const pagesift::pool_handle<host_pool> handle;
  CHECK(&handle.pool() == &pool);
  const std::size_t before = pool.stats().in_use;
  char* const p = handle.allocate(1000);
  p[0] = p[999] = 1;
  CHECK(pool.stats().in_use == before + 1024);
  handle.deallocate(p, 1000);
  CHECK(pool.stats().in_use == before);
  CHECK_THROWS_AS((void)host_pool::default_pool(-1), pagesift::invalid_argument);
  CHECK_THROWS_AS((void)host_pool::default_pool(1), pagesift::invalid_argument);
}
