// What the simulated device's backend tells tools about memory, kept for tests.
#pragma once

#include <cstddef>
#include <map>

namespace pagesift {

/// The memory that a tool would know of.
struct simulated_announcements {
  std::map<const void*, std::size_t> heaps;    ///< bytes by address
  std::map<const void*, std::size_t> regions;  ///< the same
};

/// Writes down what it is told. `Device` is `simulated_device`.
template <typename Device>
class simulated_announcer {
 public:
  template <typename Backend>
  explicit simulated_announcer(const Backend& backend) noexcept : device_{backend.device()} {}

  void heap(const void* p, std::size_t bytes) noexcept {
    device_.announce([&](simulated_announcements& all) { all.heaps[p] = bytes; });
  }
  void no_heap(const void* p) noexcept {
    device_.announce([&](simulated_announcements& all) { all.heaps.erase(p); });
  }
  void region(const void* p, std::size_t bytes) noexcept {
    device_.announce([&](simulated_announcements& all) { all.regions[p] = bytes; });
  }
  void no_region(const void* p) noexcept {
    device_.announce([&](simulated_announcements& all) { all.regions.erase(p); });
  }

 private:
  Device& device_;
};

}  // namespace pagesift
