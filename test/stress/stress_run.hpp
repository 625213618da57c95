// Threads that take blocks from pools, fill them, pass them on, check them and give them back,
// while another thread trims, retires and replaces their streams. What runs the work is a machine:
// a GPU, or the host for the tests of this.
//
// A machine has `pool_type` and `stream_type`, and
//   make_stream(), destroy_stream(s), synchronize(s)
//   order(from, to): later work of `to` waits for what was submitted to `from`
//   fill(p, bytes, value, s), check(p, bytes, value, s): work on the stream; `bytes` of 4
//   mismatches(): words found wrong by the checks that are complete
#pragma once

#include <pagesift/core/error.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace stress {

struct settings {
  double seconds = 10;
  std::uint64_t operations = 0;  ///< of each thread; 0: as many as the time allows
  unsigned threads = 16;
  unsigned streams = 4;  ///< of each thread
  std::size_t smallest = 256;
  std::size_t largest = std::size_t{256} << 20;
  std::size_t live_bytes = std::size_t{1} << 32;  ///< of each thread, at most
  std::uint64_t seed = 1;
};

struct result {
  std::atomic<std::uint64_t> operations{0};
  std::atomic<std::uint64_t> disturbances{0};
  std::atomic<std::uint64_t> shortages{0};  ///< of the pool with a limit, where they belong
  std::atomic<std::uint64_t> failures{0};   ///< exceptions that should not have come
  std::uint64_t mismatches = 0;
};

template <typename Machine>
class run {
 public:
  /// `pools`: the second one has a limit, so that shortages in it are to be expected.
  run(Machine& machine, std::vector<typename Machine::pool_type*> pools, const settings& asked)
      : machine_{machine}, pools_{std::move(pools)}, asked_{asked} {}

  void operator()(result& r) {
    end_ = std::chrono::steady_clock::now() +
           std::chrono::duration_cast<std::chrono::steady_clock::duration>(
               std::chrono::duration<double>(asked_.seconds));
    for (unsigned i = 0; i < asked_.threads; ++i) {
      workers_.push_back(std::make_unique<worker>(*this, asked_.seed + i));
    }
    std::vector<std::thread> threads;
    for (auto& w : workers_) {
      threads.emplace_back([&w, &r] { (*w)(r); });
    }
    std::thread disturber{[this, &r] { disturb(r); }};
    for (std::thread& thread : threads) {
      thread.join();
    }
    done_ = true;
    disturber.join();
    for (auto& w : workers_) {
      w->close();
    }
    r.mismatches = machine_.mismatches();
  }

 private:
  using stream_type = typename Machine::stream_type;

  struct held {
    void* p;
    std::size_t bytes;
    unsigned pattern;
    std::size_t stream;  ///< by place among the worker's
    std::size_t pool;
  };

  /// One thread's streams and blocks. The disturber comes in between two operations.
  class worker {
   public:
    worker(run& all, std::uint64_t seed) : all_{all}, random_{seed} {
      for (unsigned i = 0; i < all.asked_.streams; ++i) {
        streams_.push_back(all.machine_.make_stream());
      }
    }

    void operator()(result& r) {
      for (std::uint64_t i = 0; !all_.over(i); ++i) {
        const std::lock_guard lock{mutex_};
        one_operation(r);
        ++r.operations;
      }
      const std::lock_guard lock{mutex_};
      while (!blocks_.empty()) {
        free_one();
      }
    }

    void replace_stream(std::size_t i, bool retires) {
      const std::lock_guard lock{mutex_};
      stream_type& present = streams_[i % streams_.size()];
      const stream_type fresh = all_.machine_.make_stream();
      all_.machine_.order(present, fresh);
      if (retires) {
        for (auto* pool : all_.pools_) {
          pool->retire(present);
        }
      }
      all_.machine_.destroy_stream(present);
      present = fresh;
    }

    void close() {
      for (stream_type s : streams_) {
        all_.machine_.synchronize(s);
        all_.machine_.destroy_stream(s);
      }
    }

   private:
    [[nodiscard]] std::size_t below(std::size_t bound) { return random_() % bound; }

    void one_operation(result& r) {
      const std::size_t dice = below(100);
      try {
        if (dice < 50 && live_ < all_.asked_.live_bytes) {
          allocate(r);
        } else if (!blocks_.empty() && dice < 95) {
          free_one();
        } else if (!blocks_.empty()) {
          check_one();
        }
      } catch (const std::exception& e) {
        ++r.failures;
        std::fprintf(stderr, "unexpected: %s\n", e.what());
      }
    }

    /// As many sizes between 2^k and 2^(k+1) for each k.
    [[nodiscard]] std::size_t any_size() {
      const double low = std::log(static_cast<double>(all_.asked_.smallest));
      const double high = std::log(static_cast<double>(all_.asked_.largest));
      const double size = std::exp(std::uniform_real_distribution<double>{low, high}(random_));
      return static_cast<std::size_t>(size) / 4 * 4;
    }

    void allocate(result& r) {
      held b{nullptr, any_size(), static_cast<unsigned>(random_()), below(streams_.size()),
             below(8) == 0 ? all_.pools_.size() - 1 : 0};
      try {
        b.p = all_.pools_[b.pool]->allocate(b.bytes, streams_[b.stream]);
      } catch (const pagesift::out_of_memory&) {
        if (b.pool == 0) {
          throw;
        }
        ++r.shortages;
        return;
      }
      all_.machine_.fill(b.p, b.bytes, b.pattern, streams_[b.stream]);
      live_ += b.bytes;
      blocks_.push_back(b);
    }

    void check_one() {
      const held& b = blocks_[below(blocks_.size())];
      all_.machine_.check(b.p, b.bytes, b.pattern, streams_[b.stream]);
    }

    /// Checks a block and frees it: on its stream, on another one of this thread that waits for it,
    /// or without naming one.
    void free_one() {
      std::swap(blocks_[below(blocks_.size())], blocks_.back());
      const held b = blocks_.back();
      blocks_.pop_back();
      live_ -= b.bytes;
      const std::size_t other = below(3) == 0 ? below(streams_.size()) : b.stream;
      if (other != b.stream) {
        all_.machine_.order(streams_[b.stream], streams_[other]);
      }
      all_.machine_.check(b.p, b.bytes, b.pattern, streams_[other]);
      if (below(1000) == 0) {
        all_.pools_[b.pool]->deallocate_sync(b.p, b.bytes);
      } else {
        all_.pools_[b.pool]->deallocate(b.p, b.bytes, streams_[other]);
      }
    }

    run& all_;
    std::mt19937_64 random_;
    std::mutex mutex_;
    std::vector<stream_type> streams_;
    std::vector<held> blocks_;
    std::size_t live_ = 0;
  };

  [[nodiscard]] bool over(std::uint64_t operations) const {
    return asked_.operations != 0 ? operations >= asked_.operations
                                  : std::chrono::steady_clock::now() >= end_;
  }

  void disturb(result& r) {
    std::mt19937_64 random{asked_.seed ^ 0x5eedU};
    while (!done_) {
      try {
        disturb_once(random);
      } catch (const std::exception& e) {
        ++r.failures;
        std::fprintf(stderr, "unexpected: %s\n", e.what());
      }
      ++r.disturbances;
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }

  void disturb_once(std::mt19937_64& random) {
    auto& pool = *pools_[random() % pools_.size()];
    switch (random() % 16) {
      case 0:
        return pool.trim();
      case 1:
        return pool.trim(asked_.largest);
      case 2:
        return pool.end_batch();
      case 3:
        return (void)pool.stats();
      default:
        return workers_[random() % workers_.size()]->replace_stream(random(), random() % 2 == 0);
    }
  }

  Machine& machine_;
  std::vector<typename Machine::pool_type*> pools_;
  settings asked_;
  std::chrono::steady_clock::time_point end_;
  std::vector<std::unique_ptr<worker>> workers_;
  std::atomic<bool> done_{false};
};

/// One line for people, or one JSON object.
inline std::string summary(const settings& asked, const result& r, bool json) {
  const auto text = [](std::uint64_t n) { return std::to_string(n); };
  if (json) {
    return "{\"threads\": " + text(asked.threads) + ", \"streams\": " + text(asked.streams) +
           ", \"seconds\": " + std::to_string(asked.seconds) +
           ", \"operations\": " + text(r.operations) +
           ", \"disturbances\": " + text(r.disturbances) + ", \"shortages\": " + text(r.shortages) +
           ", \"mismatches\": " + text(r.mismatches) + ", \"failures\": " + text(r.failures) + "}";
  }
  return text(r.operations) + " operations of " + text(asked.threads) + " threads with " +
         text(asked.streams) + " streams each, " + text(r.disturbances) + " disturbances, " +
         text(r.shortages) + " shortages under the limit: " + text(r.mismatches) + " mismatches, " +
         text(r.failures) + " failures";
}

}  // namespace stress
