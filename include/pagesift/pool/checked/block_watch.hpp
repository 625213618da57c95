// Stands between a pool's users and the pool: every block is looked at on its way out and back.
#pragma once

#include <pagesift/backend/memory_contents.hpp>
#include <pagesift/core/call_stack.hpp>
#include <pagesift/core/error.hpp>
#include <pagesift/pool/checked/announcement.hpp>
#include <pagesift/pool/checked/block_ledger.hpp>
#include <pagesift/pool/checked/checked_pools.hpp>
#include <pagesift/pool/checked/patterns.hpp>
#include <pagesift/pool/checked/tell_misuse.hpp>
#include <pagesift/pool/options.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace pagesift {

/// The watch of one pool with `checks::full`, or with `announce`, or both. Blocks get red zones
/// around them, and the pool serves and takes back what includes these. Its calls may be made from
/// any thread, without the pool's lock.
template <typename Backend>
class block_watch {
 public:
  using stream_type = typename Backend::stream_type;

  /// Whether a pool with these options needs one.
  [[nodiscard]] static bool wanted(const pool_options& options) noexcept {
    return options.checks == checks::full || (options.announce && announces_memory_v<Backend>);
  }

  /// \throws std::bad_alloc
  block_watch(const Backend& backend, const pool_options& options)
      : backend_{backend}, options_{options}, tools_{backend, options.announce} {
    checked_pools::get().add(ledger_);
  }
  ~block_watch() { leave(); }

  /// Is known to other watches no more.
  void leave() noexcept { checked_pools::get().remove(ledger_); }
  block_watch(const block_watch&) = delete;
  block_watch& operator=(const block_watch&) = delete;

  /// A request: `serve(bytes)` is the pool's answer to one that includes the red zones. Without a
  /// stream the memory is for any. \throws what `serve` throws, size_overflow, invalid_argument for
  /// a stream of another device
  template <typename Serve>
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment,
                               std::optional<stream_type> stream, Serve&& serve) {
    const guarded_layout layout = guarded(bytes, alignment);
    const call_place from = place_of(stream);
    refuse_elsewhere(from, bytes);
    block_ledger::entry entry = block_ledger::prepare();
    auto* const begin = static_cast<std::byte*>(serve(layout.total));
    std::byte* const user = begin + layout.front;
    const address_range range = range_of(begin, layout.total);
    check_remains(range, from);
    const bool has_zones = from.patterns && write_zones(user, bytes, layout, from);
    block_history history;
    history.address = user;
    history.bytes = bytes;
    history.allocated_on = from.id;
    history.allocated_at = from.calls;
    ledger_.add(std::move(entry), range, history, has_zones, from.capturing);
    tools_.region(user, bytes);
    return user;
  }

  /// A free: `release(p, on_that_stream)` gives the whole block back to the pool, or null where
  /// there is none to give; `on_that_stream` is false where the stream is another device's.
  template <typename Release>
  void deallocate(const void* p, std::size_t bytes, stream_type stream,
                  Release&& release) noexcept {
    take_back(p, bytes, place_of(stream), std::forward<Release>(release));
  }

  /// A free that names no stream. `done`: the host has seen the last use complete.
  template <typename Release>
  void deallocate_sync(const void* p, std::size_t bytes, bool done, Release&& release) noexcept {
    call_place from = place_of(std::nullopt);
    from.patterns = from.patterns && done;
    take_back(p, bytes, from, std::forward<Release>(release));
  }

  /// Where the pool's block begins that a user has at `p`, or null if nobody has one there.
  [[nodiscard]] void* begin_of(const void* p) const noexcept { return ledger_.begin_of(p); }

  /// Another stream uses the block at `p` too: at its free it is neither looked at nor written to.
  void note_other_use(const void* p) noexcept { ledger_.note_other_use(p); }

  /// The pool has got memory from the backend.
  void came(const void* p, std::size_t bytes) noexcept { tools_.heap(p, bytes); }

  /// Memory of the pool's is about to go, or to be moved.
  void leaves(const void* p, std::size_t bytes) noexcept {
    ledger_.forget(range_of(p, bytes));
    tools_.no_heap(p);
  }

  /// Reports each block in use as a leak. Returns how many there are. \throws std::bad_alloc
  std::size_t report_leaks() const {
    if (!checks_fully()) {
      return 0;
    }
    const auto leaked = ledger_.all_in_use();
    for (const block_history& history : leaked) {
      tell_misuse(options_, about(misuse::leak, history));
    }
    return leaked.size();
  }

 private:
  using verdict = block_ledger::taken::verdict;

  /// Who calls, and on which stream.
  struct call_place {
    std::optional<stream_type> stream;  ///< of the call
    stream_id id = quiet_stream;
    bool elsewhere = false;  ///< the stream is another device's
    bool capturing = false;  ///< so what the work uses is in use whenever its graph runs
    bool patterns = false;   ///< memory can be read and written on the stream
    call_stack calls;
  };

  template <typename Release>
  void take_back(const void* p, std::size_t bytes, const call_place& from,
                 Release&& release) noexcept {
    const block_ledger::taken block = ledger_.take(p, from.id, from.calls);
    if (block.found != verdict::was_in_use) {
      reject(p, bytes, block, from);
      release(nullptr, true);
      return;
    }
    tools_.no_region(p);
    check_call(block.history, bytes, from);
    if (from.patterns && !block.other_uses) {  // else other work may go on
      check_zones(block, from);
      poison(block.range, from);
    }
    release(pointer(block.range.begin), !from.elsewhere);
  }

  [[nodiscard]] bool checks_fully() const noexcept { return options_.checks == checks::full; }

  [[nodiscard]] bool is_elsewhere([[maybe_unused]] stream_type stream) const noexcept {
    if constexpr (knows_places_v<Backend>) {
      return checks_fully() && backend_.is_elsewhere(stream);
    } else {
      return false;
    }
  }

  [[nodiscard]] call_place place_of(std::optional<stream_type> stream) const noexcept {
    call_place from;
    from.stream = stream;
    const stream_state seen = backend_.inspect(stream.value_or(stream_type{}));
    from.capturing = stream && seen.result.ok() && seen.capturing;
    const bool usable = seen.result.ok() && !seen.capturing;
    if (stream && usable) {
      from.id = seen.id;
      from.elsewhere = is_elsewhere(*stream);
    }
    if (checks_fully()) {
      // With tools that know the regions, the pool's own look beyond them would be an error.
      from.patterns = has_contents_v<Backend> && usable && !from.elsewhere && !tools_.active();
      from.calls = call_stack::here();
    }
    return from;
  }

  [[nodiscard]] static address_range range_of(const void* p, std::size_t bytes) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(p);
    return {begin, begin + bytes};
  }

  [[nodiscard]] static std::byte* pointer(std::uintptr_t address) noexcept {
    return reinterpret_cast<std::byte*>(address);
  }

  [[nodiscard]] static misuse_report about(misuse kind, const block_history& history) noexcept {
    misuse_report report;
    report.kind = kind;
    report.address = report.block = history.address;
    report.bytes = history.bytes;
    report.allocated_on = history.allocated_on;
    report.allocated_at = history.allocated_at;
    report.freed_on = history.freed_on;
    report.freed_at = history.freed_at;
    return report;
  }

  void tell(misuse_report report, const call_place& from) const noexcept {
    report.noticed_on = from.id;
    report.noticed_at = from.calls;
    tell_misuse(options_, report);
  }

  void refuse_elsewhere(const call_place& from, std::size_t bytes) const {
    if (from.elsewhere) {
      misuse_report report;
      report.kind = misuse::wrong_device;
      report.given_bytes = bytes;
      tell(report, from);
      throw invalid_argument{"memory was asked for on a stream of another device than the pool's"};
    }
  }

  /// A free of what is no block in use.
  void reject(const void* p, std::size_t bytes, const block_ledger::taken& block,
              const call_place& from) const noexcept {
    if (!checks_fully()) {
      return;
    }
    misuse_report report = about(misuse::foreign_pointer, block.history);
    if (block.found == verdict::was_freed) {
      report.kind = misuse::double_free;
    } else if (block.found == verdict::inside_a_block) {
      report.kind = misuse::inner_pointer;
    } else if (const auto other = checked_pools::get().in_use(p)) {
      report = about(misuse::other_pool, *other);
    }
    report.address = p;
    report.given_bytes = bytes;
    tell(report, from);
  }

  /// What is wrong about a free of a block in use.
  void check_call(const block_history& history, std::size_t bytes,
                  const call_place& from) const noexcept {
    const auto complain = [&](misuse kind) {
      misuse_report report = about(kind, history);
      report.given_bytes = bytes;
      tell(report, from);
    };
    if (!checks_fully()) {
      return;
    }
    if (bytes != history.bytes) {
      complain(misuse::wrong_size);
    }
    if (from.elsewhere) {
      complain(misuse::wrong_device);
    }
    if (options_.report_stream_changes && from.stream && from.id != history.allocated_on &&
        from.id != quiet_stream && history.allocated_on != quiet_stream) {
      complain(misuse::other_stream);
    }
  }

  /// Reports damage to a block; `offset` is that of the first byte looked at.
  void tell_damage(misuse kind, const block_history& history, const damage& found,
                   std::ptrdiff_t offset, const call_place& from) const noexcept {
    if (found.wrong_bytes != 0) {
      misuse_report report = about(kind, history);
      report.wrong_bytes = found.wrong_bytes;
      report.first_wrong_offset = offset + static_cast<std::ptrdiff_t>(found.first);
      tell(report, from);
    }
  }

  /// Takes what is known of freed memory out of the ledger, after a look whether it is untouched.
  void check_remains([[maybe_unused]] const address_range& range,
                     [[maybe_unused]] const call_place& from) noexcept {
    while (const auto rest = ledger_.take_remains(range)) {
      if constexpr (has_contents_v<Backend>) {
        if (rest->poisoned && from.patterns) {
          const std::byte* const begin = pointer(rest->range.begin);
          const damage found =
              memory(from).compare(begin, poison_byte, rest->range.end - rest->range.begin);
          tell_damage(misuse::use_after_free, rest->history, found,
                      begin - static_cast<const std::byte*>(rest->history.address), from);
        }
      }
    }
  }

  /// Returns whether the red zones of a block are written. Where no stream was named they are so
  /// for every stream; what was begun and cannot be waited for alone is waited for with all the
  /// rest: written later, it might go into what somebody else has by then.
  bool write_zones([[maybe_unused]] std::byte* user, [[maybe_unused]] std::size_t bytes,
                   [[maybe_unused]] const guarded_layout& layout,
                   [[maybe_unused]] const call_place& from) noexcept {
    if constexpr (has_contents_v<Backend>) {
      auto access = memory(from);
      const bool written = access.fill(user - guard_bytes, guard_byte, guard_bytes) &&
                           access.fill(user + bytes, guard_byte, layout.back);
      return from.stream ? written
                         : (access.wait_for(user + bytes) || backend_.fence().ok()) && written;
    } else {
      return false;
    }
  }

  void check_zones([[maybe_unused]] const block_ledger::taken& block,
                   [[maybe_unused]] const call_place& from) noexcept {
    if constexpr (has_contents_v<Backend>) {
      if (block.guarded) {
        auto access = memory(from);
        const block_history& history = block.history;
        const auto* const user = static_cast<const std::byte*>(history.address);
        const std::byte* const end = user + history.bytes;
        tell_damage(misuse::underrun, history,
                    access.compare(user - guard_bytes, guard_byte, guard_bytes),
                    -static_cast<std::ptrdiff_t>(guard_bytes), from);
        tell_damage(misuse::overrun, history,
                    access.compare(end, guard_byte,
                                   static_cast<std::size_t>(pointer(block.range.end) - end)),
                    end - user, from);
      }
    }
  }

  /// Fills a freed block that the pool does not have back yet. Where no stream is named the pool
  /// waits for the whole context before it hands the memory out.
  void poison([[maybe_unused]] const address_range& range,
              [[maybe_unused]] const call_place& from) noexcept {
    if constexpr (has_contents_v<Backend>) {
      auto access = memory(from);
      std::byte* const begin = pointer(range.begin);
      if (access.fill(begin, poison_byte, range.end - range.begin)) {
        ledger_.poisoned(range);
      }
    }
  }

  [[nodiscard]] pattern_access<Backend> memory(const call_place& from) noexcept {
    return {backend_, from.stream.value_or(stream_type{})};
  }

  mutable Backend backend_;
  const pool_options& options_;
  announcement<Backend> tools_;
  block_ledger ledger_;
};

}  // namespace pagesift
