// Events of the backend, created once and used again.
#pragma once

#include <pagesift/backend/backend.hpp>
#include <pagesift/core/reserve.hpp>

#include <cstddef>
#include <vector>

namespace pagesift {

/// Names an event of an `event_pool`.
using event_slot = std::size_t;

/// Events with a count of their users: a timeline that waits for one, a thread that is about to
/// pass it to the backend without the pool's lock. Not thread-safe: the pool's lock guards it.
template <typename Backend>
class event_pool {
 public:
  using event_type = typename Backend::event_type;

  /// Whether `take` has an event to give.
  [[nodiscard]] bool has_spare() const noexcept { return !free_.empty(); }

  /// Takes over an event that was just created. \throws std::bad_alloc; it is not taken over then
  void add(event_type event) {
    reserve_amortised(slots_, slots_.size() + 1);
    reserve_amortised(free_, slots_.size() + 1);
    slots_.push_back({event, 0});
    free_.push_back(slots_.size() - 1);
  }

  /// An event with one user. Precondition: `has_spare()`.
  [[nodiscard]] event_slot take() noexcept {
    const event_slot slot = free_.back();
    free_.pop_back();
    slots_[slot].users = 1;
    return slot;
  }

  void retain(event_slot slot) noexcept { ++slots_[slot].users; }

  void release(event_slot slot) noexcept {
    if (--slots_[slot].users == 0) {
      free_.push_back(slot);
    }
  }

  [[nodiscard]] event_type event(event_slot slot) const noexcept { return slots_[slot].event; }

  /// Events in existence.
  [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }

  /// Destroys every event; none may be in use. Errors are of no use to anybody by then.
  void destroy_all(Backend& backend) noexcept {
    for (const counted& slot : slots_) {
      (void)backend.destroy_event(slot.event);
    }
    slots_.clear();
    free_.clear();
  }

 private:
  struct counted {
    event_type event;
    std::size_t users;
  };

  std::vector<counted> slots_;
  std::vector<event_slot> free_;
};

}  // namespace pagesift
