// The calls of the simulated backend that reserve addresses and map memory behind them.
#pragma once

#include <pagesift/backend/simulated_caller.hpp>
#include <pagesift/backend/virtual_memory.hpp>
#include <pagesift/core/bytes.hpp>

#include <cstddef>

namespace pagesift {

/// Virtual memory of one simulated device. The judge checks every call.
class simulated_mapper : public simulated_caller {
 public:
  using physical_type = simulated_physical;

  /// Fails where the device was set up without virtual memory, and for any peer: there is none.
  [[nodiscard]] status can_map(const mapping_options& options) const noexcept {
    return call(simulated_call::can_map, [&](simulated_device& device, lock&) {
      if (!device.options_.virtual_memory) {
        return failure("can_map", simulated_code::not_supported);
      }
      return options.peers.empty() ? status{} : failure("can_map", simulated_code::no_device);
    });
  }

  [[nodiscard]] std::size_t granule_bytes() const noexcept { return granule; }

  status reserve(std::size_t bytes, void*& p) noexcept {
    return call(simulated_call::reserve, [&](simulated_device& device, lock&) {
      if (!can_have_size(device, bytes)) {
        return failure("reserve", simulated_code::invalid_value);
      }
      void* const addresses = device.reserved_.take(bytes, 0);
      if (addresses == nullptr) {
        return shortage("reserve");
      }
      p = addresses;
      return status{};
    });
  }

  status unreserve(void* p, std::size_t bytes) noexcept {
    return call(simulated_call::unreserve, [&](simulated_device& device, lock&) {
      if (!device.judge_.unreserved(p, bytes)) {
        return failure("unreserve", simulated_code::invalid_value);
      }
      device.reserved_.give_back(p);
      return status{};
    });
  }

  /// Physical memory counts against the same budget as what was acquired.
  status create(std::size_t bytes, const mapping_options& options, physical_type& h) noexcept {
    return call(simulated_call::create, [&](simulated_device& device, lock&) {
      if (!can_have_size(device, bytes) || !options.peers.empty()) {
        return failure("create", simulated_code::invalid_value);
      }
      if (bytes > device.free_bytes()) {
        return shortage("create");
      }
      h = device.mapped_.create(bytes);
      return status{};
    });
  }

  /// Legal while it is mapped: the memory then lives until it is unmapped.
  status destroy(physical_type h) noexcept {
    return call(simulated_call::destroy, [&](simulated_device& device, lock&) {
      if (!device.judge_.destroyed(h)) {
        return failure("destroy", simulated_code::invalid_value);
      }
      device.mapped_.destroy(h);
      return status{};
    });
  }

  /// A piece may be mapped at several addresses; a user may get it only while it is at one.
  status map(void* p, std::size_t bytes, physical_type h, const mapping_options& options) noexcept {
    return call(simulated_call::map, [&](simulated_device& device, lock&) {
      if (!device.judge_.mapped(p, bytes, h) || !options.peers.empty()) {
        return failure("map", simulated_code::invalid_value);
      }
      device.mapped_.map({p, bytes}, h);
      return status{};
    });
  }

  status unmap(void* p, std::size_t bytes) noexcept {
    return call(simulated_call::unmap, [&](simulated_device& device, lock&) {
      device.check_graphs("unmapped", p, bytes);
      if (!device.judge_.unmapped(p, bytes, device.streams_.host())) {
        return failure("unmap", simulated_code::invalid_value);
      }
      device.mapped_.unmap({p, bytes});
      device.contents_.clear({p, bytes});
      return status{};
    });
  }

 protected:
  using simulated_caller::simulated_caller;

 private:
  static constexpr std::size_t granule = 2 * mebibyte;

  [[nodiscard]] static bool can_have_size(const simulated_device& device, std::size_t bytes) {
    return device.options_.virtual_memory && bytes != 0 && bytes % granule == 0;
  }
};

}  // namespace pagesift
