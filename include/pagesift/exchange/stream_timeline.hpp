// A stream's timeline: which of its frees an event covers, and which are known complete.
#pragma once

#include <pagesift/back/block.hpp>
#include <pagesift/exchange/event_pool.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

namespace pagesift {

/// Life of a free on this stream: it happens in epoch `current()`; a seal closes that epoch by
/// recording an event after it (`sealed`); the event is seen complete by the host (`complete`).
/// Memory freed in a sealed epoch may go to another stream behind a wait, in a complete one at
/// once.
///
/// The pool's mutex guards it, but for `current` and `owes_seal`, which the hit path reads without
/// it. A free that still reads an epoch whose event is being recorded is covered by that event all
/// the same: its work was submitted before the free, and so before the event.
template <typename Backend>
class stream_timeline {
 public:
  /// Seals that may be outstanding; one more replaces the newest, whose epochs it covers too.
  static constexpr std::size_t max_pending = 4;

  struct seal {
    epoch covered;  ///< this epoch and all before it
    event_slot slot;
  };

  /// Starts with nothing freed. `first` is an epoch no other timeline has had.
  explicit stream_timeline(epoch first) noexcept
      : current_{first}, sealed_{first - 1}, complete_{first - 1} {}

  /// The same anew, for another stream. Precondition: `!has_pending()`.
  void restart(epoch first) noexcept {
    current_.store(first, std::memory_order_relaxed);
    owes_seal_.store(false, std::memory_order_relaxed);
    sealed_ = complete_ = first - 1;
  }

  [[nodiscard]] epoch current() const noexcept { return current_.load(std::memory_order_relaxed); }
  [[nodiscard]] epoch complete() const noexcept { return complete_; }
  /// Whether an event covers frees of that epoch and has not been seen complete.
  [[nodiscard]] bool is_pending(epoch freed) const noexcept {
    return freed <= sealed_ && freed > complete_;
  }
  [[nodiscard]] bool is_complete(epoch freed) const noexcept { return freed <= complete_; }
  [[nodiscard]] bool has_pending() const noexcept { return pending_count_ != 0; }

  /// Whether frees wait for a seal that failed.
  [[nodiscard]] bool owes_seal() const noexcept {
    return owes_seal_.load(std::memory_order_relaxed);
  }

  /// Closes the current epoch and returns it: frees from now on belong to `next`. The caller then
  /// records an event on the stream and calls `publish`, or `reopen` if that failed; until then the
  /// epoch is not sealed.
  epoch close(epoch next) noexcept {
    owes_seal_.store(false, std::memory_order_relaxed);
    return current_.exchange(next, std::memory_order_relaxed);
  }

  /// What was closed is still not covered by anything: the next free had better see to it.
  void reopen() noexcept { owes_seal_.store(true, std::memory_order_relaxed); }

  /// The event in `slot` was recorded after epoch `covered` was closed. Takes over one use of it.
  void publish(epoch covered, event_slot slot, event_pool<Backend>& events) noexcept {
    if (covered <= sealed_) {  // a later seal overtook this one and covers it
      events.release(slot);
      return;
    }
    sealed_ = covered;
    if (pending_count_ == max_pending) {
      events.release(pending_[--pending_count_].slot);
    }
    pending_[pending_count_++] = {covered, slot};
  }

  /// The seal to wait for so that frees of epoch `freed` are complete.
  /// Precondition: `is_pending(freed)`.
  [[nodiscard]] seal seal_of(epoch freed) const noexcept {
    return *std::find_if(pending_.begin(), pending_.begin() + pending_count_,
                         [freed](const seal& s) { return s.covered >= freed; });
  }

  /// The oldest outstanding seal. Precondition: `has_pending()`.
  [[nodiscard]] seal oldest_pending() const noexcept { return pending_.front(); }

  /// The host has seen everything up to epoch `covered` complete.
  void complete_up_to(epoch covered, event_pool<Backend>& events) noexcept {
    complete_ = std::max(complete_, covered);
    sealed_ = std::max(sealed_, covered);
    std::size_t done = 0;
    while (done < pending_count_ && pending_[done].covered <= complete_) {
      events.release(pending_[done++].slot);
    }
    std::move(pending_.begin() + done, pending_.begin() + pending_count_, pending_.begin());
    pending_count_ -= done;
  }

  /// Asks the backend which seals have completed. Stops at the first that has not.
  status poll(Backend& backend, event_pool<Backend>& events) noexcept {
    while (has_pending()) {
      const seal oldest = pending_.front();
      const status result = backend.query(events.event(oldest.slot));
      if (!result.ok()) {
        return result.not_ready() ? status{} : result;
      }
      complete_up_to(oldest.covered, events);
    }
    return {};
  }

 private:
  std::atomic<epoch> current_;
  std::atomic<bool> owes_seal_{false};
  epoch sealed_;
  epoch complete_;
  std::array<seal, max_pending> pending_{};
  std::size_t pending_count_ = 0;
};

}  // namespace pagesift
