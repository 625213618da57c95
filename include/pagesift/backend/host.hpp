// Host memory as a backend: real memory, and nothing runs behind the caller's back.
#pragma once

#include <pagesift/backend/backend.hpp>
#include <pagesift/backend/host_memory.hpp>
#include <pagesift/backend/memory_place.hpp>
#include <pagesift/core/error.hpp>

#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <system_error>
#include <unistd.h>

namespace pagesift {

/// The one stream of the host backend: work is complete when the call that did it returns.
struct host_stream {
  friend constexpr bool operator==(host_stream, host_stream) noexcept { return true; }
  friend constexpr bool operator!=(host_stream, host_stream) noexcept { return false; }
};

/// An event of the host backend. It has nothing to remember: all work is complete at once.
struct host_event {};

/// The backend for host memory. Holds no state; thread-safe.
class host_backend {
 public:
  using stream_type = host_stream;
  using event_type = host_event;

  static constexpr const char* memory_name = "host memory";

  /// A child has the memory as it was at the fork, and nothing takes it away before the end.
  static constexpr bool needs_driver = false;

  /// Every acquisition starts at a multiple of this many bytes: a page of the page heap.
  static constexpr std::size_t acquisition_alignment = host_memory_alignment;

  /// \param device 0, or -1 for the current one; the host is device 0.
  /// \throws invalid_argument for any other device.
  [[nodiscard]] static host_backend open(int device) {
    if (device != -1 && device != 0) {
      throw invalid_argument{"the host backend has device 0 only, got " + std::to_string(device)};
    }
    return {};
  }

  /// What pools of host memory compete for.
  [[nodiscard]] static memory_place place() noexcept { return {"host", 0}; }

  [[nodiscard]] static constexpr int current_device() noexcept { return 0; }

  [[nodiscard]] status acquire(std::size_t bytes, void*& p) noexcept {
    return host_memory::acquire(bytes, p);
  }
  status release(void* p, std::size_t bytes) noexcept { return host_memory::release(p, bytes); }

  /// Physical memory of the machine. Where the system does not tell how much is free, all counts
  /// as free; where it tells nothing, both are the size of the address space.
  [[nodiscard]] memory_info memory() const noexcept {
    const std::size_t total = pages_in_bytes(sysconf(_SC_PHYS_PAGES));
    if (total == 0) {
      return {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max()};
    }
#ifdef _SC_AVPHYS_PAGES
    const std::size_t free = pages_in_bytes(sysconf(_SC_AVPHYS_PAGES));
    if (free != 0 && free <= total) {
      return {free, total};
    }
#endif
    return {total, total};
  }

  [[nodiscard]] stream_state inspect(stream_type) const noexcept { return {}; }
  [[nodiscard]] bool get_id_unless_capturing(stream_type, stream_id& id) const noexcept {
    id = 0;
    return true;
  }
  [[nodiscard]] bool is_not_capturing(stream_type) const noexcept { return true; }

  status create_event(event_type&) noexcept { return {}; }
  status destroy_event(event_type) noexcept { return {}; }
  status record(event_type, stream_type) noexcept { return {}; }
  status query(event_type) noexcept { return {}; }
  status synchronize(event_type) noexcept { return {}; }
  status wait(stream_type, event_type) noexcept { return {}; }
  status fence() noexcept { return {}; }

  // Beyond the concept: what a buffer of this backend's memory needs. Here both sides are the host.

  status copy_to_device(void* to, const void* from, std::size_t bytes, stream_type) noexcept {
    std::memcpy(to, from, bytes);
    return {};
  }
  status copy_to_host(void* to, const void* from, std::size_t bytes, stream_type) noexcept {
    std::memcpy(to, from, bytes);
    return {};
  }

  // For those who look for mistakes (see memory_contents.hpp).
  status fill(void* p, unsigned char byte, std::size_t bytes, stream_type) noexcept {
    std::memset(p, byte, bytes);
    return {};
  }

  [[nodiscard]] std::string describe(int code) const {
    return std::generic_category().message(code);
  }

 private:
  [[nodiscard]] static std::size_t pages_in_bytes(long pages) noexcept {
    const long system_page_bytes = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || system_page_bytes <= 0) {
      return 0;
    }
    return static_cast<std::size_t>(pages) * static_cast<std::size_t>(system_page_bytes);
  }
};

static_assert(is_backend_v<host_backend>);

}  // namespace pagesift
