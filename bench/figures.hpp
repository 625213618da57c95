// What an allocator under test tells about itself, beside the time it takes.
#pragma once

#include <cstdint>
#include <optional>

namespace bench {

/// Totals since the allocator was made; what an allocator cannot know is left out.
struct figures {
  std::optional<std::uint64_t> device_allocations;  ///< requests that reached the device
  std::optional<std::uint64_t> hits;                ///< requests served from idle memory
  std::optional<std::uint64_t> misses;
  std::optional<std::uint64_t> held_bytes;  ///< taken from the device now
  std::optional<std::uint64_t> peak_bytes;  ///< most ever held
};

}  // namespace bench
