// The ledgers of all checked pools in the process: whose block is it, if it is not ours?
#pragma once

#include <pagesift/pool/checked/block_ledger.hpp>

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

namespace pagesift {

/// Never destroyed: pools that are static objects leave it at process exit.
class checked_pools {
 public:
  [[nodiscard]] static checked_pools& all() {
    static auto* const pools = new checked_pools{};
    return *pools;
  }

  /// \throws std::bad_alloc
  void add(const block_ledger& ledger) {
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

 private:
  checked_pools() = default;

  mutable std::mutex mutex_;
  std::vector<const block_ledger*> ledgers_;
};

}  // namespace pagesift
