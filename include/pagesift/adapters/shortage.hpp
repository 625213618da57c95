// Giving memory of a device back when a pool of the device system is short of it.
#pragma once

#include <pagesift/adapters/system.hpp>
#include <pagesift/pool/shortage_helpers.hpp>

#include <cstddef>
#include <functional>
#include <utility>

namespace pagesift {
inline namespace PAGESIFT_SYSTEM_NAMESPACE {

/// What the device system's pools of `device` compete for; on the host there is only one.
[[nodiscard]] inline memory_place memory_of([[maybe_unused]] int device) noexcept {
#if defined(PAGESIFT_DEVICE_IS_CUDA)
  return device_backend::place_of_device(device);
#else
  return device_backend::place();
#endif
}

/// Has `give(bytes)` called when a pool is short of the memory of `device` (see `on_shortage_of` of
/// a `memory_place`): how another library's pool gives its memory to those of pagesift.
/// \throws std::bad_alloc
[[nodiscard]] inline giver_registration on_shortage_of(
    int device, std::function<std::size_t(std::size_t bytes)> give) {
  return on_shortage_of(memory_of(device), std::move(give));
}

/// Has the pools of `device` give idle memory back: for another library's pool that is short of it
/// (see `ask_for_memory` of a `memory_place`). \throws std::bad_alloc, what a giver throws
inline std::size_t ask_for_memory(int device, std::size_t bytes) {
  return ask_for_memory(memory_of(device), bytes);
}

}  // namespace PAGESIFT_SYSTEM_NAMESPACE
}  // namespace pagesift
