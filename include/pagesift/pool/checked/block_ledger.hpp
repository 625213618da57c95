// What a checked pool knows of its blocks: those in use, and the freed ones whose bytes are known.
#pragma once

#include <pagesift/back/block.hpp>
#include <pagesift/core/call_stack.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace pagesift {

/// Where a block came from and where it went.
struct block_history {
  const void* address = nullptr;  ///< the user's
  std::size_t bytes = 0;
  stream_id allocated_on = quiet_stream;
  stream_id freed_on = quiet_stream;
  call_stack allocated_at;
  call_stack freed_at;
};

/// Addresses from `begin` up to, not including, `end`.
struct address_range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

/// Every block of one pool by address. Thread-safe; its lock is held over nothing but a look-up.
/// Nothing is allocated at a free: what it needs is set aside when the block is handed out.
class block_ledger {
  struct freed_piece {
    std::uintptr_t end = 0;
    std::shared_ptr<block_history> history;
    bool poisoned = false;  ///< all of it holds the pattern of freed memory
  };
  using freed_map = std::map<std::uintptr_t, freed_piece>;  // by begin; pieces do not overlap

  struct live_block {
    address_range range;  ///< with its red zones
    std::shared_ptr<block_history> history;
    bool guarded = false;         ///< its red zones are written
    bool other_uses = false;      ///< another stream uses it too, or a graph may
    freed_map::node_type parked;  ///< where it goes when it is freed
  };
  using live_map = std::map<std::uintptr_t, live_block>;  // by the user's address

 public:
  /// Room for one block, made before the block is had so that nothing fails after.
  class entry {
    friend class block_ledger;
    live_map::node_type node_;
  };

  /// What became of an address given to `take`.
  struct taken {
    enum class verdict : unsigned char { was_in_use, was_freed, inside_a_block, unknown };
    verdict found = verdict::unknown;
    block_history history;  ///< unless unknown; without this free
    address_range range;    ///< of one that was in use
    bool guarded = false;
    bool other_uses = false;
  };

  /// A part of a freed block.
  struct remains {
    address_range range;
    block_history history;
    bool poisoned = false;
  };

  /// \throws std::bad_alloc
  [[nodiscard]] static entry prepare() {
    freed_map freed;
    freed.emplace(0, freed_piece{});
    live_map live;
    live_block& made = live[0];
    made.history = std::make_shared<block_history>();
    made.parked = freed.extract(freed.begin());
    entry e;
    e.node_ = live.extract(live.begin());
    return e;
  }

  /// A block came into use. `other_uses`: a graph may use it, whatever its free says.
  void add(entry e, const address_range& range, const block_history& history, bool guarded,
           bool other_uses) noexcept {
    e.node_.key() = address(history.address);
    live_block& block = e.node_.mapped();
    block.range = range;
    block.guarded = guarded;
    block.other_uses = other_uses;
    *block.history = history;
    const std::lock_guard<std::mutex> lock{mutex_};
    live_.insert(std::move(e.node_));
  }

  /// A user frees `p`. One in use is freed from here on; of any other the ledger says what it is.
  [[nodiscard]] taken take(const void* p, stream_id freed_on, const call_stack& freed_at) noexcept {
    const std::lock_guard<std::mutex> lock{mutex_};
    const auto found = live_.find(address(p));
    if (found == live_.end()) {
      return look_up_lost(p);
    }
    live_block& block = found->second;
    taken result{taken::verdict::was_in_use, *block.history, block.range, block.guarded,
                 block.other_uses};
    block.history->freed_on = freed_on;
    block.history->freed_at = freed_at;
    block.parked.key() = block.range.begin;
    block.parked.mapped() = {block.range.end, block.history, false};
    freed_.insert(std::move(block.parked));
    live_.erase(found);
    return result;
  }

  /// Where the pool's block begins that is in use at `p`, or null if nobody has one there.
  [[nodiscard]] void* begin_of(const void* p) const noexcept {
    const std::lock_guard<std::mutex> lock{mutex_};
    const auto found = live_.find(address(p));
    return found == live_.end() ? nullptr : reinterpret_cast<void*>(found->second.range.begin);
  }

  /// Another stream uses the block in use at `p` too.
  void note_other_use(const void* p) noexcept {
    const std::lock_guard<std::mutex> lock{mutex_};
    if (const auto found = live_.find(address(p)); found != live_.end()) {
      found->second.other_uses = true;
    }
  }

  /// A freed block holds the pattern of freed memory; the pool does not have it back yet.
  void poisoned(const address_range& range) noexcept {
    const std::lock_guard<std::mutex> lock{mutex_};
    const auto found = freed_.find(range.begin);
    if (found != freed_.end()) {
      found->second.poisoned = true;
    }
  }

  /// Takes out what is left of one freed block in `range`; none when there is no more.
  [[nodiscard]] std::optional<remains> take_remains(const address_range& range) noexcept {
    const std::lock_guard<std::mutex> lock{mutex_};
    auto at = freed_.upper_bound(range.begin);
    if (at != freed_.begin() && std::prev(at)->second.end > range.begin) {
      --at;
    }
    if (at == freed_.end() || at->first >= range.end) {
      return std::nullopt;
    }
    return cut(at, range);
  }

  /// The memory of a range is about to go, or to be moved: nothing is known of it from here on.
  void forget(const address_range& range) noexcept {
    while (take_remains(range)) {
    }
  }

  /// The history of the block in use at `p`.
  [[nodiscard]] std::optional<block_history> in_use(const void* p) const noexcept {
    const std::lock_guard<std::mutex> lock{mutex_};
    const auto found = live_.find(address(p));
    return found == live_.end() ? std::nullopt : std::optional{*found->second.history};
  }

  /// All blocks in use. \throws std::bad_alloc
  [[nodiscard]] std::vector<block_history> all_in_use() const {
    const std::lock_guard<std::mutex> lock{mutex_};
    std::vector<block_history> all;
    all.reserve(live_.size());
    for (const auto& [where, block] : live_) {
      all.push_back(*block.history);
    }
    return all;
  }

  /// Keeps every other thread out of the ledger from `hold` to `let_go`.
  void hold() noexcept { mutex_.lock(); }
  void let_go() noexcept { mutex_.unlock(); }

 private:
  [[nodiscard]] static std::uintptr_t address(const void* p) noexcept {
    return reinterpret_cast<std::uintptr_t>(p);
  }

  /// What an address is that no block in use begins at. Ranges hold the users' addresses, so that
  /// both have one order.
  [[nodiscard]] taken look_up_lost(const void* p) const noexcept {
    const std::uintptr_t at = address(p);
    const auto freed = freed_.upper_bound(at);
    if (freed != freed_.begin() && std::prev(freed)->second.end > at) {
      const block_history& history = *std::prev(freed)->second.history;
      return {history.address == p ? taken::verdict::was_freed : taken::verdict::inside_a_block,
              history,
              {},
              false,
              false};
    }
    const auto next = live_.upper_bound(at);
    for (auto live = next == live_.begin() ? next : std::prev(next), end = live_.end();
         live != end && live->second.range.begin <= at; ++live) {
      if (at < live->second.range.end) {
        return {taken::verdict::inside_a_block, *live->second.history, {}, false, false};
      }
    }
    return {};
  }

  /// Cuts `range` out of a piece. Host memory too short for a piece more costs knowledge only.
  [[nodiscard]] remains cut(freed_map::iterator at, const address_range& range) noexcept {
    const std::uintptr_t begin = at->first;
    const freed_piece piece = at->second;
    if (piece.end > range.end) {
      try {
        freed_.emplace(range.end, piece);
      } catch (...) {
      }
    }
    if (begin < range.begin) {
      at->second.end = range.begin;
    } else {
      freed_.erase(at);
    }
    return {
        {begin < range.begin ? range.begin : begin, piece.end > range.end ? range.end : piece.end},
        *piece.history,
        piece.poisoned};
  }

  mutable std::mutex mutex_;
  live_map live_;
  freed_map freed_;
};

}  // namespace pagesift
