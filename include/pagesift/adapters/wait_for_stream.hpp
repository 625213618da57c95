// Making a block safe for every stream.
#pragma once

#include <pagesift/adapters/system.hpp>
#include <pagesift/backend/backend.hpp>
#include <pagesift/core/status.hpp>

#include <cstddef>

namespace pagesift {
inline namespace PAGESIFT_SYSTEM_NAMESPACE {

/// Whether `s` is the default stream, under any of its names.
[[nodiscard]] inline bool is_default_stream(stream s) noexcept {
#if defined(PAGESIFT_DEVICE_IS_CUDA)
  return explicit_stream(s) == explicit_stream(nullptr);
#else
  return s == stream{};
#endif
}

/// Returns when the host has seen the work submitted to `s` so far done, and with it every earlier
/// use of `p`, a block of `bytes` bytes that was just allocated on `s`.
/// \throws backend_error where waiting fails; the block is back in the pool then.
template <typename Pool>
void wait_for_stream(Pool& pool, void* p, std::size_t bytes, typename Pool::stream_type s) {
  auto& backend = pool.backend();
  typename Pool::backend_type::event_type event{};
  status result = backend.create_event(event);
  if (result.ok()) {
    result = backend.record(event, s);
    if (result.ok()) {
      result = backend.synchronize(event);
    }
    (void)backend.destroy_event(event);
  }
  if (!result.ok()) {
    pool.deallocate(p, bytes, s);
  }
  require_ok(backend, result);
}

}  // namespace PAGESIFT_SYSTEM_NAMESPACE
}  // namespace pagesift
