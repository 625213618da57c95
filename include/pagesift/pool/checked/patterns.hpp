// The patterns of checked mode: red zones around a block in use, poison in a freed one.
#pragma once

#include <pagesift/backend/memory_contents.hpp>
#include <pagesift/core/size_class.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

namespace pagesift {

inline constexpr unsigned char guard_byte = 0xB7;   ///< red zones
inline constexpr unsigned char poison_byte = 0xD6;  ///< freed memory

/// Bytes of the red zone before a block; behind it are as many, and what fills up the last 256.
inline constexpr std::size_t guard_bytes = 256;

/// How a block lies between its red zones. All in bytes.
struct guarded_layout {
  std::size_t front = 0;  ///< from the beginning to the user's address
  std::size_t back = 0;   ///< from the user's end to the end
  std::size_t total = 0;
};

/// Precondition: `alignment` is one that a request may ask for. \throws size_overflow
[[nodiscard]] inline guarded_layout guarded(std::size_t bytes, std::size_t alignment) {
  if (bytes > max_block_bytes) {
    throw size_overflow{bytes, 1};
  }
  guarded_layout layout;
  layout.front = std::max(guard_bytes, alignment);
  layout.back = align_up(bytes, guard_bytes) - bytes + guard_bytes;
  layout.total = layout.front + bytes + layout.back;
  if (layout.total > max_block_bytes) {
    throw size_overflow{bytes, 1};
  }
  return layout;
}

/// Bytes that are not what they should be.
struct damage {
  std::size_t wrong_bytes = 0;
  std::size_t first = 0;  ///< offset of the first, where there is one
};

/// Looks at memory through the backend, in the order of one stream.
template <typename Backend>
class pattern_access {
 public:
  pattern_access(Backend& backend, typename Backend::stream_type stream) noexcept
      : backend_{backend}, stream_{stream} {}

  bool fill(std::byte* p, unsigned char byte, std::size_t bytes) noexcept {
    return backend_.fill(p, byte, bytes, stream_).ok();
  }

  /// Waits for what was filled so far.
  bool wait_for(const std::byte* p) noexcept {
    std::byte first{};
    return backend_.copy_to_host(&first, p, 1, stream_).ok();
  }

  /// What differs from `byte`; nothing where it cannot be read. Waits for the stream.
  [[nodiscard]] damage compare(const std::byte* p, unsigned char byte, std::size_t bytes) noexcept {
    damage found;
    const std::size_t step = std::min(bytes, most_at_once);
    const std::unique_ptr<std::byte[]> copy{new (std::nothrow) std::byte[step]};
    for (std::size_t done = 0; copy != nullptr && done < bytes;) {
      const std::size_t now = std::min(step, bytes - done);
      if (!backend_.copy_to_host(copy.get(), p + done, now, stream_).ok()) {
        break;
      }
      count_wrong(copy.get(), std::byte{byte}, now, done, found);
      done += now;
    }
    return found;
  }

 private:
  static constexpr std::size_t most_at_once = std::size_t{1} << 20;

  static void count_wrong(const std::byte* copy, std::byte expected, std::size_t bytes,
                          std::size_t offset, damage& found) noexcept {
    if (copy[0] == expected && std::memcmp(copy, copy + 1, bytes - 1) == 0) {
      return;  // all are equal, as nearly always
    }
    for (std::size_t i = 0; i < bytes; ++i) {
      if (copy[i] != expected) {
        found.first = found.wrong_bytes == 0 ? offset + i : found.first;
        ++found.wrong_bytes;
      }
    }
  }

  Backend& backend_;
  typename Backend::stream_type stream_;
};

}  // namespace pagesift
