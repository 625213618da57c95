// Giving memory back through a handle, from destructors and other code that must not throw.
#pragma once

#include <cstddef>

namespace pagesift {

/// Gives `p` back to the pool that `handle` names, as freed on `stream`; null is nothing. A pool
/// that cannot be named any more (asking for the current device fails once the driver has gone)
/// cannot take memory either: then there is nothing to do.
template <typename Handle, typename Stream>
void return_memory(const Handle& handle, void* p, std::size_t bytes, Stream stream) noexcept {
  try {
    handle.pool().deallocate(p, bytes, stream);
  } catch (...) {
  }
}

/// The same for memory that was used on any streams: waits for their work.
template <typename Handle>
void return_memory(const Handle& handle, void* p, std::size_t bytes) noexcept {
  try {
    handle.pool().deallocate_sync(p, bytes);
  } catch (...) {
  }
}

}  // namespace pagesift
