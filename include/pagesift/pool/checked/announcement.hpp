// Tells tools about a pool's memory, where the backend can and the options ask for it.
#pragma once

#include <pagesift/backend/memory_contents.hpp>

#include <cstddef>
#include <optional>

namespace pagesift {

/// What a pool holds is a heap, and what its users have are regions of it.
template <typename Backend, bool Announces = announces_memory_v<Backend>>
class announcement {
 public:
  announcement(const Backend& backend, bool wanted) {
    if (wanted) {
      tool_.emplace(backend);
    }
  }

  [[nodiscard]] bool active() const noexcept { return tool_.has_value(); }

  void heap(const void* p, std::size_t bytes) noexcept {
    if (tool_) {
      tool_->heap(p, bytes);
    }
  }
  void no_heap(const void* p) noexcept {
    if (tool_) {
      tool_->no_heap(p);
    }
  }
  void region(const void* p, std::size_t bytes) noexcept {
    if (tool_) {
      tool_->region(p, bytes);
    }
  }
  void no_region(const void* p) noexcept {
    if (tool_) {
      tool_->no_region(p);
    }
  }

 private:
  std::optional<typename Backend::announcer_type> tool_;
};

/// A backend that no tool looks at.
template <typename Backend>
class announcement<Backend, false> {
 public:
  announcement(const Backend&, bool) noexcept {}

  [[nodiscard]] static constexpr bool active() noexcept { return false; }
  void heap(const void*, std::size_t) noexcept {}
  void no_heap(const void*) noexcept {}
  void region(const void*, std::size_t) noexcept {}
  void no_region(const void*) noexcept {}
};

}  // namespace pagesift
