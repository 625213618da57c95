// Idle blocks that may be used again on one stream at once, by class, and what passed through.
#pragma once

#include <pagesift/back/page_run.hpp>
#include <pagesift/back/request.hpp>
#include <pagesift/core/size_class.hpp>
#include <pagesift/front/spin_lock.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace pagesift {

/// Counts of one class in one cache. Blocks may be handed out by one cache and taken back by
/// another: only the sums over all caches mean anything, modulo 2^n.
struct class_traffic {
  std::uint64_t handed_out = 0;
  std::size_t in_use_blocks = 0;
  std::size_t in_use_bytes = 0;
};

/// Per class a LIFO list of idle blocks, the newest free first.
///
/// A stream has one cache, and a further one for each thread that found the others in use. `lock`
/// guards it. The hit path holds one cache's lock and no other; the slow path holds the pool's
/// mutex and then all of them (see cache_registry.hpp), and so may look at any.
class alignas(64) stream_cache {
 public:
  spin_lock lock;

  /// Whose blocks wait here. Changes only while every cache is locked.
  stream_id stream = unordered_stream;
  unsigned char number = 0;  ///< among the caches of its stream

  [[nodiscard]] bool empty() const noexcept { return blocks_ == 0; }
  [[nodiscard]] const block_list& of(class_index index) const noexcept {
    return entries_[index].idle;
  }

  /// The newest block of the class, taken out; or null.
  [[nodiscard]] block* pop_newest(class_index index) noexcept {
    block_list& idle = entries_[index].idle;
    if (idle.empty()) {
      return nullptr;
    }
    block& b = idle.pop_newest();
    leave(b);
    return &b;
  }

  void push(block& b, last_use use) noexcept {
    b.use = use;
    enter(b);
    waiting_list(b).push_newest(b);
    if (unsealed_epoch_ != use.freed) {
      unsealed_epoch_ = use.freed;
      unsealed_bytes_ = 0;
    }
    unsealed_bytes_ += b.run->block_bytes;
  }

  /// Puts back a block that was taken as the oldest and not used since.
  void put_back(block& b) noexcept {
    enter(b);
    waiting_list(b).push_oldest(b);
  }

  void erase(block& b) noexcept {
    waiting_list(b).erase(b);
    leave(b);
  }

  /// Bytes that wait here and were freed in the stream's current epoch `now`.
  [[nodiscard]] std::size_t unsealed_bytes(epoch now) const noexcept {
    return unsealed_epoch_ == now ? unsealed_bytes_ : 0;
  }

  /// The largest block that waits here, or null.
  [[nodiscard]] const block* largest() const noexcept {
    for (class_index i = class_count; i-- > 0;) {
      if (!entries_[i].idle.empty()) {
        return entries_[i].idle.newest();
      }
    }
    return nullptr;
  }

  /// Moves every block to `other`, as used last by `use`.
  void move_to(stream_cache& other, last_use use) noexcept {
    for (entry& e : entries_) {
      while (block* b = e.idle.oldest()) {
        erase(*b);
        other.push(*b, use);
      }
    }
  }

  /// A block leaves for its user, who asked for class `index`, in batch `batch`.
  void handed_out(const block& b, class_index index, std::uint64_t batch) noexcept {
    entry& e = entries_[index];
    const std::size_t bytes = b.run->block_bytes;
    ++e.traffic.handed_out;
    ++e.traffic.in_use_blocks;
    e.traffic.in_use_bytes += bytes;
    entries_[b.run->waiting].last_batch = batch;
    moved_bytes_ += static_cast<std::ptrdiff_t>(bytes);
    most_moved_bytes_ = std::max(most_moved_bytes_, moved_bytes_);
  }

  /// A user's block comes back.
  void taken_back(const block& b) noexcept {
    class_traffic& traffic = entries_[b.requested].traffic;
    const std::size_t bytes = b.run->block_bytes;
    --traffic.in_use_blocks;
    traffic.in_use_bytes -= bytes;
    moved_bytes_ -= static_cast<std::ptrdiff_t>(bytes);
    ++frees_;
  }

  [[nodiscard]] const class_traffic& traffic(class_index index) const noexcept {
    return entries_[index].traffic;
  }
  /// The last batch in which a block that would wait in class `index` was handed out.
  [[nodiscard]] std::uint64_t last_batch(class_index index) const noexcept {
    return entries_[index].last_batch;
  }
  /// Blocks taken back so far.
  [[nodiscard]] std::uint64_t frees() const noexcept { return frees_; }

  /// What was handed out less what was taken back, in bytes, since `settle`; and the most it was.
  [[nodiscard]] std::ptrdiff_t moved_bytes() const noexcept { return moved_bytes_; }
  [[nodiscard]] std::ptrdiff_t most_moved_bytes() const noexcept { return most_moved_bytes_; }
  void settle() noexcept { moved_bytes_ = most_moved_bytes_ = 0; }

 private:
  struct entry {
    block_list idle;
    class_traffic traffic;
    std::uint64_t last_batch = 0;
  };

  [[nodiscard]] block_list& waiting_list(const block& b) noexcept {
    return entries_[b.run->waiting].idle;
  }

  void enter(block& b) noexcept {
    b.cache = number;
    b.set(block_state::idle);
    ++blocks_;
  }

  void leave(block& b) noexcept {
    b.set(block_state::taken);
    unsealed_bytes_ -= b.use.freed == unsealed_epoch_ ? b.run->block_bytes : 0;
    --blocks_;
  }

  std::size_t blocks_ = 0;
  epoch unsealed_epoch_ = 0;
  std::size_t unsealed_bytes_ = 0;
  std::ptrdiff_t moved_bytes_ = 0;
  std::ptrdiff_t most_moved_bytes_ = 0;
  std::uint64_t frees_ = 0;
  std::array<entry, class_count> entries_{};
};

}  // namespace pagesift
