// The ledgers of all checked pools in the process: whose block is it, if it is not ours?
#pragma once

#include <pagesift/core/one_per_process.hpp>
#include <pagesift/core/process_life.hpp>
#include <pagesift/pool/checked/block_ledger.hpp>

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

namespace pagesift {

/// Thread-safe. While the process forks no ledger is amid a change: the child finds them whole.
class PAGESIFT_ONE_PER_PROCESS checked_pools final : private life_member {
 public:
  /// \throws std::bad_alloc
  [[nodiscard]] static checked_pools& get() { return one_per_process<checked_pools>(); }

  /// \throws std::bad_alloc
  void add(block_ledger& ledger) {
    const std::lock_guard<std::mutex> lock{mutex_};
    ledgers_.push_back(&ledger);
  }

  void remove(const block_ledger& ledger) noexcept {
    const std::lock_guard<std::mutex> lock{mutex_};
    ledgers_.erase(std::remove(ledgers_.begin(), ledgers_.end(), &ledger), ledgers_.end());
  }

  /// The history of the block in use at `p`, of whichever pool.
  [[nodiscard]] std::optional<block_history> in_use(const void* p) const noexcept {
    const std::lock_guard<std::mutex> lock{mutex_};
    for (const block_ledger* ledger : ledgers_) {
      if (auto found = ledger->in_use(p)) {
        return found;
      }
    }
    return std::nullopt;
  }

  checked_pools() noexcept { process_life::get().join(*this); }
  ~checked_pools() override { process_life::get().leave(*this); }

 private:
  // Behind the locks of pools, which take a ledger's while they hold their own: who joins later is
  // told first, and a checked pool joins after this.
  void before_fork() noexcept override {
    mutex_.lock();
    for (block_ledger* ledger : ledgers_) {
      ledger->hold();
    }
  }
  void after_fork_in_parent() noexcept override {
    for (block_ledger* ledger : ledgers_) {
      ledger->let_go();
    }
    mutex_.unlock();
  }
  void after_fork_in_child() noexcept override { after_fork_in_parent(); }
  void at_exit() noexcept override {}

  mutable std::mutex mutex_;
  std::vector<block_ledger*> ledgers_;
};

}  // namespace pagesift
