#include "host_limit.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

bool host_limit::grant() noexcept {
  if (!set || suspended) {
    return true;
  }
  if (left != 0) {
    --left;
    return true;
  }
  set = !recovers;
  refused = true;
  return false;
}

host_limit& this_threads_host_limit() noexcept {
  static thread_local host_limit mine;
  return mine;
}

namespace {

void* take(std::size_t bytes, std::size_t alignment) {
  const std::size_t whole = (bytes / alignment + 1) * alignment;
  void* const p =
      this_threads_host_limit().grant() ? std::aligned_alloc(alignment, whole) : nullptr;
  if (p == nullptr) {
    throw std::bad_alloc{};
  }
  return p;
}

}  // namespace

void* operator new(std::size_t bytes) { return take(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
