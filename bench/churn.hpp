// Random requests and frees that keep an allocator as full as they are told to.
#pragma once

#include "machine.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <new>
#include <random>
#include <vector>

namespace bench {

/// Random sizes in bytes, uniform in their logarithm; the same in every run.
class log_uniform_sizes {
 public:
  log_uniform_sizes(std::size_t smallest, std::size_t largest) : sizes_(count) {
    std::mt19937_64 random{20240301};
    const double low = std::log2(static_cast<double>(smallest));
    const double high = std::log2(static_cast<double>(largest));
    for (std::size_t& bytes : sizes_) {
      const double part = static_cast<double>(random() >> 11) * 0x1p-53;
      bytes = static_cast<std::size_t>(std::exp2(low + part * (high - low)));
    }
  }

  [[nodiscard]] std::size_t next() noexcept { return sizes_[index_++ % count]; }

 private:
  static constexpr std::size_t count = std::size_t{1} << 16;  // drawn before the clock runs

  std::vector<std::size_t> sizes_;
  std::size_t index_ = 0;
};

/// Blocks of random sizes from one allocator on one stream, freed in random order.
template <typename Allocator>
class churn {
 public:
  churn(Allocator& allocator, stream s, log_uniform_sizes sizes)
      : allocator_{allocator}, stream_{s}, sizes_{std::move(sizes)}, wanted_{sizes_.next()} {}
  churn(const churn&) = delete;
  churn& operator=(const churn&) = delete;
  ~churn() {
    for (const block& b : blocks_) {
      allocator_.deallocate(b.p, b.bytes, stream_);
    }
  }

  /// One request where that leaves at most `level_bytes` in use, else one free. A size that does
  /// not fit waits until it does, so that large sizes are as frequent in a full allocator.
  /// \returns false where the request failed for want of memory; the same is asked for next
  [[nodiscard]] bool step(std::size_t level_bytes) {
    ++steps_;
    if (live_bytes_ + wanted_ > level_bytes && !blocks_.empty()) {
      free_any();
      return true;
    }
    void* p = nullptr;
    try {
      p = allocator_.allocate(wanted_, stream_);
    } catch (const std::bad_alloc&) {
      return false;
    }
    blocks_.push_back({p, wanted_});
    live_bytes_ += wanted_;
    most_live_bytes_ = std::max(most_live_bytes_, live_bytes_);
    wanted_ = sizes_.next();
    return true;
  }

  [[nodiscard]] std::size_t live_bytes() const noexcept { return live_bytes_; }
  [[nodiscard]] std::size_t most_live_bytes() const noexcept { return most_live_bytes_; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

 private:
  struct block {
    void* p = nullptr;
    std::size_t bytes = 0;
  };

  void free_any() {
    block& chosen = blocks_[static_cast<std::size_t>(random_()) % blocks_.size()];
    allocator_.deallocate(chosen.p, chosen.bytes, stream_);
    live_bytes_ -= chosen.bytes;
    chosen = blocks_.back();
    blocks_.pop_back();
  }

  Allocator& allocator_;
  stream stream_;
  log_uniform_sizes sizes_;
  std::mt19937_64 random_{20240302};
  std::vector<block> blocks_;
  std::size_t wanted_;
  std::size_t live_bytes_ = 0;
  std::size_t most_live_bytes_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace bench
