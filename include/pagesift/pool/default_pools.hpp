// The pools that everybody shares, one per device.
#pragma once

#include <pagesift/core/error.hpp>
#include <pagesift/core/one_per_process.hpp>
#include <pagesift/pool/environment.hpp>
#include <pagesift/pool/options.hpp>

#include <atomic>
#include <memory>
#include <string>

namespace pagesift {

/// Makes each device's pool at first use and never destroys it: at process exit the backend may be
/// unloaded before the last static object that frees into the pool. All libraries of the process
/// share them. A pool that has found its device reset is no default pool any more; it stays, for
/// what still refers to it.
template <typename Pool>
class default_pools {
 public:
  static constexpr int max_devices = 64;

  /// \throws invalid_argument for a device number out of range, and what making a pool throws
  [[nodiscard]] static Pool& of(int device) {
    if (device < 0 || device >= max_devices) {
      throw invalid_argument{"a device must be from 0 to " + std::to_string(max_devices - 1) +
                             ", got " + std::to_string(device)};
    }
    std::atomic<Pool*>& place = places()[device];
    Pool* pool = place.load(std::memory_order_acquire);
    return pool != nullptr && !pool->found_reset() ? *pool : make(place, pool, device);
  }

 private:
  /// Of pools that several threads make at once, in the place of none or of `former`, the first
  /// that is complete stays.
  static Pool& make(std::atomic<Pool*>& place, Pool* former, int device) {
    pool_options options = default_pool_options();
    options.device = device;
    auto made = std::make_unique<Pool>(options);
    Pool* present = former;
    if (place.compare_exchange_strong(present, made.get(), std::memory_order_acq_rel)) {
      present = made.release();
    }
    return *present;
  }

  struct table {
    std::atomic<Pool*> of[max_devices] = {};
  };

  static std::atomic<Pool*>* places() { return one_per_process<table>().of; }
};

}  // namespace pagesift
