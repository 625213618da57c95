// Uses of blocks on streams other than the one they are freed on.
#pragma once

#include <pagesift/exchange/event_pool.hpp>
#include <pagesift/front/stream_record.hpp>

#include <algorithm>
#include <cstddef>
#include <list>
#include <unordered_map>

namespace pagesift {

/// For each block that a user has marked as used on another stream, an event of that stream; after
/// its free the block waits here until they are complete. The pool's mutex guards it.
template <typename Backend>
class other_uses {
 public:
  using record = stream_record<Backend>;

  /// The work of `stream` before the event in `slot`.
  struct mark {
    stream_id stream;
    event_slot slot;
  };

  /// Marks of a block in use up to which nobody asks whether they are complete.
  static constexpr std::size_t fewest_to_ask = 8;

  /// `leaving`: on its way to a taker whose stream is being made to wait.
  enum class phase : unsigned char { in_use, waiting, leaving };

  struct entry {
    std::list<mark> marks;
    record* freed_on = nullptr;  ///< pinned, unless the block is in use
    epoch freed = 0;             ///< of nobody else
    epoch owners = 0;            ///< of `freed_on` at the free
    int writers = 0;             ///< calls in progress that are to add a mark
    phase now = phase::in_use;
    std::size_t ask_at = fewest_to_ask;  ///< so many marks are worth asking after while in use
  };

  /// Room for one more mark of a block in use. \throws std::bad_alloc
  class room {
   public:
    room(other_uses& all, block& b) : mark_(1), all_{all}, block_{b} {
      ++all_.entries_[&b].writers;
    }
    room(const room&) = delete;
    room& operator=(const room&) = delete;
    ~room() {
      const auto own = all_.entries_.find(&block_);
      if (--own->second.writers == 0 && own->second.marks.empty()) {
        all_.entries_.erase(own);
      }
    }

    /// Takes over one use of the event. A later event of the same stream stands for an earlier one.
    void fill(const mark& m, event_pool<Backend>& events) noexcept {
      std::list<mark>& marks = all_.entries_.find(&block_)->second.marks;
      release_if(marks, events, [&m](const mark& other) { return other.stream == m.stream; });
      mark_.front() = m;
      marks.splice(marks.end(), mark_);
    }

   private:
    std::list<mark> mark_;
    other_uses& all_;
    block& block_;
  };

  /// Drops marks of a block in use that are complete, once there are many: a block that lives on
  /// would else keep an event for every stream that ever used it. Asks after each at most twice on
  /// average; a question that fails is no completion.
  void drop_complete(block& b, Backend& backend, event_pool<Backend>& events) noexcept {
    entry& used = entries_.find(&b)->second;
    if (used.marks.size() < used.ask_at) {
      return;
    }
    release_if(used.marks, events,
               [&](const mark& m) { return backend.query(events.event(m.slot)).ok(); });
    used.ask_at = std::max(fewest_to_ask, 2 * used.marks.size());
  }

  /// Blocks that wait.
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }

  /// Keeps a block that is freed on `owner` at `freed`, if it has to wait. Uses on `owner` itself
  /// do not count, and where only a fence will tell, it tells of all.
  bool hold_back(block& b, record& owner, epoch freed, event_pool<Backend>& events) noexcept {
    const auto found = entries_.find(&b);
    if (found == entries_.end()) {
      return false;
    }
    entry& held = found->second;
    const bool named = owner.id != quiet_stream && owner.id != unordered_stream;
    release_if(held.marks, events, [&](const mark& m) { return !named || m.stream == owner.id; });
    if (held.marks.empty()) {
      entries_.erase(found);
      return false;
    }
    ++owner.pins;
    ++waiting_;
    held.freed_on = &owner;
    held.freed = freed;
    held.owners = owner.newest_away = owner.timeline.current();
    held.now = phase::waiting;
    return true;
  }

  /// Drops what is known of a block's uses: something else covers them from here on. Returns
  /// whether there were any. Precondition: the block was claimed from its user and does not wait
  /// here.
  bool forget(block& b, event_pool<Backend>& events) noexcept {
    const auto found = entries_.find(&b);
    if (found == entries_.end()) {
      return false;
    }
    release_if(found->second.marks, events, [](const mark&) { return true; });
    entries_.erase(found);
    return true;
  }

  /// Asks the backend after every mark of what waits, and calls `put(record&, block&, epoch)` for
  /// what need not wait any more, with the epoch of the stream in which it was freed. Returns the
  /// first failure that is not "not ready".
  template <typename Put>
  status poll(Backend& backend, event_pool<Backend>& events, Put&& put) noexcept {
    status first_failure;
    release_waiting(
        [&](entry& held) {
          release_if(held.marks, events, [&](const mark& m) {
            const status result = backend.query(events.event(m.slot));
            const bool failed = !result.ok() && !result.not_ready();
            first_failure = failed && first_failure.ok() ? result : first_failure;
            return result.ok();
          });
          return held.marks.empty();
        },
        events, put);
    return first_failure;
  }

  /// Calls `put(record&, block&, epoch)` for what was freed up to `freed`: a fence has shown all
  /// complete.
  template <typename Put>
  void complete_up_to(epoch freed, event_pool<Backend>& events, Put&& put) noexcept {
    release_waiting([freed](const entry& held) { return held.freed <= freed; }, events, put);
  }

  /// A mark of a block that waits. Precondition: `waiting() != 0`.
  [[nodiscard]] mark first_awaited() const noexcept {
    const auto found = std::find_if(entries_.begin(), entries_.end(), [](const auto& named) {
      return named.second.now == phase::waiting;
    });
    return found->second.marks.front();
  }

  /// Begins to take a block of that class freed on `owner`; null if none waits. `end_taking` or
  /// `give_up_taking` must follow; its marks stay until then.
  [[nodiscard]] block* begin_taking(const record& owner, class_index waiting) noexcept {
    for (auto& [b, held] : entries_) {
      if (held.now == phase::waiting && held.freed_on == &owner && b->run->waiting == waiting) {
        held.now = phase::leaving;
        --waiting_;
        return b;
      }
    }
    return nullptr;
  }
  [[nodiscard]] const std::list<mark>& marks_of(block& b) const noexcept {
    return entries_.find(&b)->second.marks;
  }
  void end_taking(block& b, event_pool<Backend>& events) noexcept {
    const auto found = entries_.find(&b);
    forget(found->second, events);
    entries_.erase(found);
  }
  void give_up_taking(block& b) noexcept {
    entries_.find(&b)->second.now = phase::waiting;
    ++waiting_;
  }

 private:
  template <typename Gone>
  static void release_if(std::list<mark>& marks, event_pool<Backend>& events,
                         Gone&& gone) noexcept {
    for (auto m = marks.begin(); m != marks.end();) {
      if (gone(*m)) {
        events.release(m->slot);
        m = marks.erase(m);
      } else {
        ++m;
      }
    }
  }

  template <typename Done, typename Put>
  void release_waiting(Done&& done, event_pool<Backend>& events, Put&& put) noexcept {
    for (auto i = entries_.begin(); i != entries_.end();) {
      entry& held = i->second;
      if (held.now != phase::waiting || !done(held)) {
        ++i;
        continue;
      }
      put(*held.freed_on, *i->first, held.owners);
      --waiting_;
      forget(held, events);
      i = entries_.erase(i);
    }
  }

  static void forget(entry& held, event_pool<Backend>& events) noexcept {
    release_if(held.marks, events, [](const mark&) { return true; });
    --held.freed_on->pins;
  }

  std::unordered_map<block*, entry> entries_;
  std::size_t waiting_ = 0;
};

}  // namespace pagesift
