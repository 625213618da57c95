// The backend calls of an assembly: creating, unmapping and mapping its pieces, and the way back.
#pragma once

#include <pagesift/back/assembly.hpp>
#include <pagesift/backend/virtual_memory.hpp>

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace pagesift {

/// A granule's physical memory, as the backend names it.
template <typename Backend>
[[nodiscard]] typename Backend::physical_type physical_of(const granule& g) noexcept {
  typename Backend::physical_type physical{};
  static_assert(sizeof physical <= sizeof g.physical);
  std::memcpy(static_cast<void*>(&physical), &g.physical, sizeof physical);
  return physical;
}

template <typename Physical>
void set_physical(granule& g, const Physical& physical) noexcept {
  static_assert(sizeof physical <= sizeof g.physical && std::is_trivially_copyable_v<Physical>);
  g.physical = 0;
  std::memcpy(&g.physical, &physical, sizeof physical);
}

/// Moves pieces to their targets. All calls are made without the pool's lock: nobody else knows of
/// the pieces and their addresses.
template <typename Backend>
class piece_mover {
 public:
  piece_mover(Backend& backend, const mapping_options& options) noexcept
      : backend_{backend}, options_{options} {}

  /// Brings all pieces to their targets. On failure everything goes back to where it was, as far as
  /// the backend lets it; each piece's `state` says where it is.
  status move(assembly& a) noexcept {
    status result = for_each(a, [this](assembly_piece& p) { return create(p); });
    if (result.ok()) {
      result = for_each(a, [this](assembly_piece& p) { return leave_origin(p); });
    }
    if (result.ok()) {
      result =
          for_each(a, [this](assembly_piece& p) { return enter(p, p.part->start, at_target); });
    }
    if (!result.ok()) {
      for (assembly_piece& p : a.pieces) {
        undo(p);
      }
    }
    return result;
  }

  /// Unmaps a granule and gives its memory back. On failure it is mapped as before, or `lost`.
  status release(granule& g, bool& lost) noexcept {
    const auto physical = physical_of<Backend>(g);
    status result = backend_.unmap(g.start, g.bytes());
    if (!result.ok()) {
      return result;
    }
    result = backend_.destroy(physical);
    if (!result.ok()) {
      lost = !insist([&] { return backend_.map(g.start, g.bytes(), physical, options_); });
    }
    return result;
  }

 private:
  static constexpr auto nowhere = piece_state::nowhere;
  static constexpr auto at_origin = piece_state::at_origin;
  static constexpr auto at_target = piece_state::at_target;

  template <typename Step>
  static status for_each(assembly& a, Step&& step) noexcept {
    for (assembly_piece& p : a.pieces) {
      const status result = step(p);
      if (!result.ok()) {
        return result;
      }
    }
    return {};
  }

  /// On the way back a call that failed may well succeed when it is made again.
  template <typename Call>
  static bool insist(Call&& call) noexcept {
    constexpr int attempts = 3;
    for (int i = 0; i < attempts; ++i) {
      if (call().ok()) {
        return true;
      }
    }
    return false;
  }

  status create(assembly_piece& p) noexcept {
    if (!p.is_new) {
      return {};
    }
    typename Backend::physical_type physical{};
    const status result = backend_.create(p.piece->bytes(), options_, physical);
    if (result.ok()) {
      set_physical(*p.piece, physical);
    }
    return result;
  }

  status leave_origin(assembly_piece& p) noexcept {
    if (p.is_new) {
      return {};
    }
    const status result = backend_.unmap(p.piece->start, p.piece->bytes());
    p.state = result.ok() ? nowhere : p.state;
    return result;
  }

  status enter(assembly_piece& p, std::byte* start, piece_state there) noexcept {
    const status result =
        backend_.map(start, p.piece->bytes(), physical_of<Backend>(*p.piece), options_);
    p.state = result.ok() ? there : p.state;
    return result;
  }

  /// Back to the origin, for a new piece: away. Memory that can be neither stays at its target.
  void undo(assembly_piece& p) noexcept {
    if (p.piece->physical == 0 || p.state == at_origin) {
      return;
    }
    if (p.state == at_target &&
        !insist([&] { return backend_.unmap(p.part->start, p.piece->bytes()); })) {
      return;
    }
    p.state = nowhere;
    if (!p.is_new && insist([&] { return enter(p, p.piece->start, at_origin); })) {
      return;
    }
    if (p.is_new && destroyed(p)) {
      return;
    }
    if (!insist([&] { return enter(p, p.part->start, at_target); }) && !p.is_new) {
      (void)destroyed(p);
    }
  }

  bool destroyed(const assembly_piece& p) noexcept {
    return insist([&] { return backend_.destroy(physical_of<Backend>(*p.piece)); });
  }

  Backend& backend_;
  const mapping_options& options_;
};

}  // namespace pagesift
