// Idle blocks that may be used again on one stream at once, by class, and what passed through.
#pragma once

#include <pagesift/back/page_run.hpp>
#include <pagesift/back/request.hpp>
#include <pagesift/core/inlining.hpp>
#include <pagesift/core/size_class.hpp>
#include <pagesift/front/cache_lock.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace pagesift {

/// Blocks that passed through one cache, of one class of requests. They may be handed out by one
/// cache and taken back by another: only the sums over all caches mean anything, modulo 2^64.
struct class_traffic {
  std::uint64_t handed_out = 0;
  std::uint64_t taken_back = 0;
  std::size_t in_use_bytes = 0;
};

/// Per class a stack of idle blocks, the newest free on top.
///
/// A stream has one cache, and a further one for each thread that found the others in use. `lock`
/// guards it. The hit path holds one cache's lock and no other; the slow path holds the pool's
/// mutex and then all of them (see cache_registry.hpp), and so may look at any.
class alignas(64) stream_cache {
 public:
  cache_lock lock;

  /// Whose blocks wait here. Changes only while `lock` is held.
  stream_id stream = unordered_stream;
  unsigned char number = 0;  ///< among the caches of its stream

  [[nodiscard]] const block_stack& of(class_index index) const noexcept {
    return entries_[index].idle;
  }

  /// Whether a block of the class may wait here; may be asked without the lock.
  [[nodiscard]] bool may_have(class_index index) const noexcept {
    return !entries_[index].idle.empty();
  }

  /// The newest block of the class, taken out; or null. Its state is left for the caller to set.
  [[nodiscard]] block* pop(class_index index) noexcept {
    block_stack& idle = entries_[index].idle;
    if (idle.empty()) {
      return nullptr;
    }
    block& b = idle.pop();
    leave(b);
    return &b;
  }

  /// A block that serves a request of `bytes` bytes whose blocks wait in class `index`, which has
  /// none, and have a run each: one that was made without slack and so waits a class lower; or,
  /// where memory is plentiful, a larger one, up to twice the class. Taken out; or null.
  [[nodiscard]] block* pop_near(class_index index, std::size_t bytes, bool plentiful) noexcept {
    const block* const lower = entries_[index - 1].idle.newest();
    if (lower != nullptr && lower->run->block_bytes >= bytes) {
      return pop(index - 1);
    }
    return plentiful ? pop_larger(index) : nullptr;
  }

  void push(block& b, last_use use) noexcept {
    if (unsealed_epoch_ != use.freed) {
      unsealed_epoch_ = use.freed;
      unsealed_bytes_ = 0;
    }
    unsealed_bytes_ += b.run->block_bytes;
    b.use = use;
    b.cache = number;
    b.set(block_state::idle);
    waiting(b).push(b);
  }

  /// Takes in a block that was freed in the epoch of `use` and waited elsewhere since: it lies
  /// below those freed in later epochs. Takes time in proportion to their number.
  void push_late(block& b, last_use use) noexcept {
    if (use.freed >= unsealed_epoch_) {
      push(b, use);
      return;
    }
    b.use = use;
    b.cache = number;
    b.set(block_state::idle);
    waiting(b).push_below(b, [&use](const block& other) { return other.use.freed > use.freed; });
  }

  /// Puts back a block that was taken as the oldest and not used since. Others may have been taken
  /// so and put back meanwhile.
  void put_back(block& b) noexcept {
    b.set(block_state::idle);
    waiting(b).push_below(b, [&b](const block& other) { return other.use.freed >= b.use.freed; });
  }

  /// Takes out one block, wherever it lies.
  void erase(block& b) noexcept {
    waiting(b).remove_if([&b](const block& other) { return &other == &b; });
    leave(b);
  }

  /// Takes out the blocks of class `index` for which `leaves(block&)` holds, and calls
  /// `gone(block&)` for each, which may put it into another stack.
  template <typename Leaves, typename Gone>
  void erase_if(class_index index, Leaves&& leaves, Gone&& gone) {
    entries_[index].idle.remove_if([&](block& b) {
      if (!leaves(b)) {
        return false;
      }
      leave(b);
      gone(b);
      return true;
    });
  }

  /// Bytes that wait here and were freed in the stream's current epoch `now`.
  [[nodiscard]] std::size_t unsealed_bytes(epoch now) const noexcept {
    return unsealed_epoch_ == now ? unsealed_bytes_ : 0;
  }

  /// Whether a free of `bytes` brings the bytes that no event covers to `threshold`, and it is time
  /// for another seal on that account. Nobody has asked for one: so each time it is granted, twice
  /// as many frees as before go by until the next. A block that is freed and taken again in a loop,
  /// larger than the threshold, would else cost an event each time.
  [[nodiscard]] bool seal_is_due(epoch now, std::size_t bytes, std::size_t threshold) noexcept {
    if (unsealed_bytes(now) + bytes < threshold) {
      return false;
    }
    if (frees_until_seal_ != 0) {
      --frees_until_seal_;
      return false;
    }
    return true;
  }
  void sealed_unasked() noexcept {
    seal_interval_ = std::min(2 * seal_interval_ + 1, max_seal_interval);
    frees_until_seal_ = seal_interval_;
  }
  void sealed_on_request() noexcept { seal_interval_ = frees_until_seal_ = 0; }

  /// Serves another stream from now on. Precondition: no block waits here.
  void restart(stream_id named) noexcept {
    stream = named;
    sealed_on_request();
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

  /// Moves every block to `other`, as used last by `use`, in the order of their frees.
  void move_to(stream_cache& other, last_use use) noexcept {
    for (entry& e : entries_) {
      block_stack oldest_first;
      while (!e.idle.empty()) {
        block& b = e.idle.pop();
        leave(b);
        oldest_first.push(b);
      }
      while (!oldest_first.empty()) {
        other.push(oldest_first.pop(), use);
      }
    }
  }

  /// The block at `p` if it is the one that was handed out last; or null. Temporary storage mostly
  /// is when it comes back: that saves looking it up.
  [[nodiscard]] block* last_handed_out(const void* p) const noexcept {
    return last_ != nullptr && last_->address == p ? last_ : nullptr;
  }

  /// A block leaves for its user, who asked for class `index`.
  void handed_out(block& b, class_index index) noexcept {
    last_ = &b;
    class_traffic& traffic = entries_[index].traffic;
    const std::size_t bytes = b.run->block_bytes;
    ++traffic.handed_out;
    traffic.in_use_bytes += bytes;
    moved_bytes_ += static_cast<std::ptrdiff_t>(bytes);
    most_moved_bytes_ = std::max(most_moved_bytes_, moved_bytes_);
  }

  /// A user's block comes back.
  void taken_back(const block& b) noexcept {
    class_traffic& traffic = entries_[b.requested].traffic;
    const std::size_t bytes = b.run->block_bytes;
    ++traffic.taken_back;
    traffic.in_use_bytes -= bytes;
    moved_bytes_ -= static_cast<std::ptrdiff_t>(bytes);
  }

  /// A block in use, for a request of class `index`, has given up `bytes` bytes.
  void shortened(class_index index, std::size_t bytes) noexcept {
    entries_[index].traffic.in_use_bytes -= bytes;
    moved_bytes_ -= static_cast<std::ptrdiff_t>(bytes);
  }

  [[nodiscard]] const class_traffic& traffic(class_index index) const noexcept {
    return entries_[index].traffic;
  }

  /// What was handed out less what was taken back, in bytes, since `settle`; and the most it was.
  [[nodiscard]] std::ptrdiff_t moved_bytes() const noexcept { return moved_bytes_; }
  [[nodiscard]] std::ptrdiff_t most_moved_bytes() const noexcept { return most_moved_bytes_; }

  /// Starts counting anew and forgets the block handed out last: runs may be given back now.
  void settle() noexcept {
    moved_bytes_ = most_moved_bytes_ = 0;
    last_ = nullptr;
  }

 private:
  /// A block of the next classes, up to twice the size of `index`; or null.
  PAGESIFT_RARELY_CALLED [[nodiscard]] block* pop_larger(class_index index) noexcept {
    const class_index last =
        std::min(index + size_class_rules::classes_per_doubling, class_count - 1);
    for (class_index i = index + 1; i <= last; ++i) {
      if (!entries_[i].idle.empty()) {
        return pop(i);
      }
    }
    return nullptr;
  }

  struct entry {
    block_stack idle;
    class_traffic traffic;
  };

  [[nodiscard]] block_stack& waiting(const block& b) noexcept {
    return entries_[b.run->waiting].idle;
  }

  void leave(const block& b) noexcept {
    unsealed_bytes_ -= b.use.freed == unsealed_epoch_ ? b.run->block_bytes : 0;
  }

  static constexpr std::uint32_t max_seal_interval = 1U << 16U;

  block* last_ = nullptr;
  epoch unsealed_epoch_ = 0;
  std::size_t unsealed_bytes_ = 0;
  std::uint32_t seal_interval_ = 0;
  std::uint32_t frees_until_seal_ = 0;
  std::ptrdiff_t moved_bytes_ = 0;
  std::ptrdiff_t most_moved_bytes_ = 0;
  std::array<entry, class_count> entries_{};
};

}  // namespace pagesift
