// The pools that everybody shares, one per device.
#pragma once

#include <pagesift/core/error.hpp>
#include <pagesift/pool/options.hpp>

#include <atomic>
#include <mutex>
#include <string>

namespace pagesift {

/// Makes each device's pool at first use and never destroys it: at process exit the backend may be
/// unloaded before the last static object that frees into the pool.
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
    return pool != nullptr ? *pool : make(place, device);
  }

 private:
  static Pool& make(std::atomic<Pool*>& place, int device) {
    const std::lock_guard<std::mutex> guard{making_};
    Pool* pool = place.load(std::memory_order_relaxed);
    if (pool == nullptr) {
      pool_options options;
      options.device = device;
      pool = new Pool{options};
      place.store(pool, std::memory_order_release);
    }
    return *pool;
  }

  // Not a static member: nvcc 13.0 takes its type for incomplete.
  static std::atomic<Pool*>* places() noexcept {
    static std::atomic<Pool*> pools[max_devices] = {};
    return pools;
  }

  static inline std::mutex making_;
};

}  // namespace pagesift
