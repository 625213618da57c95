// Virtual memory: an optional capability of a backend. Addresses are reserved, physical memory is
// created in pieces, and each piece is mapped behind addresses and unmapped again.
#pragma once

#include <pagesift/backend/backend.hpp>
#include <pagesift/core/error.hpp>
#include <pagesift/core/status.hpp>

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace pagesift {

/// What mapped memory must be good for besides the device's own kernels and copies.
struct mapping_options {
  bool gpu_direct_rdma = false;  ///< network cards and the like may read and write it directly
  std::vector<int> peers;        ///< other devices that may read and write it, by number
};

/// Whether the backend `B` has virtual memory. Required, besides what a backend needs, with
/// `B b; B::physical_type h`: one piece of physical memory, trivially copyable, comparable by `==`;
/// a default-made one is none.
///
/// | expression | result | meaning |
/// |---|---|---|
/// | `b.can_map(options)` | `status` | ok: one granule was reserved, created, mapped and undone |
/// | `b.granule_bytes()` | `std::size_t` | see below |
/// | `b.reserve(bytes, p)` | `status` | `p`: `bytes` addresses, aligned to 2 MiB, no memory |
/// | `b.unreserve(p, bytes)` | `status` | a whole reservation in which nothing is mapped |
/// | `b.create(bytes, options, h)` | `status` | `h`: `bytes` bytes of memory; or `shortage` |
/// | `b.destroy(h)` | `status` | the memory goes back now, or with its last mapping |
/// | `b.map(p, bytes, h, options)` | `status` | all of `h` behind addresses with nothing mapped |
/// | `b.unmap(p, bytes)` | `status` | whole mappings; the host has seen the last use complete |
///
/// The granule is the smallest piece worth mapping on its own, a multiple of 2 MiB. Sizes and
/// addresses are multiples of it, of reservations multiples of 2 MiB. `can_map` fails where the
/// device's own granules are larger than 2 MiB.
///
/// Whatever a piece holds stays in it while it is unmapped and mapped elsewhere. Options are the
/// same for `can_map`, `create` and `map` of one piece. A failed call changes nothing: after a
/// failed `map` nothing is mapped. None of the calls throws, waits for work of the device, or ends
/// a capture; what a backend promises of its other calls holds for these.
template <typename B, typename = void>
struct is_virtual_backend : std::false_type {};

template <typename B>
struct is_virtual_backend<
    B, std::void_t<
           typename B::physical_type,
           decltype(bool{typename B::physical_type{} == typename B::physical_type{}}),
           decltype(status{std::declval<const B&>().can_map(mapping_options{})}),
           decltype(std::size_t{std::declval<const B&>().granule_bytes()}),
           decltype(status{std::declval<B&>().reserve(std::size_t{}, std::declval<void*&>())}),
           decltype(status{std::declval<B&>().unreserve(std::declval<void*>(), std::size_t{})}),
           decltype(status{std::declval<B&>().create(std::size_t{},
                                                     std::declval<const mapping_options&>(),
                                                     std::declval<typename B::physical_type&>())}),
           decltype(status{std::declval<B&>().destroy(typename B::physical_type{})}),
           decltype(status{std::declval<B&>().map(std::declval<void*>(), std::size_t{},
                                                  typename B::physical_type{},
                                                  std::declval<const mapping_options&>())}),
           decltype(status{std::declval<B&>().unmap(std::declval<void*>(), std::size_t{})})>>
    : std::conjunction<
          is_backend<B>, std::is_trivially_copyable<typename B::physical_type>,
          std::bool_constant<noexcept(std::declval<B&>().unmap(std::declval<void*>(), 1))>,
          std::bool_constant<noexcept(std::declval<B&>().destroy(typename B::physical_type{}))>,
          std::bool_constant<noexcept(std::declval<B&>().unreserve(std::declval<void*>(), 1))>> {};

template <typename B>
inline constexpr bool is_virtual_backend_v = is_virtual_backend<B>::value;

/// \throws invalid_argument with the number of the first peer that cannot reach the memory;
/// backend_error where virtual memory does not work here for another reason.
template <typename Backend>
void require_mappable(const Backend& backend, const mapping_options& options) {
  const status all = backend.can_map(options);
  if (all.ok()) {
    return;
  }
  const bool without_peers = backend.can_map({options.gpu_direct_rdma, {}}).ok();
  for (const int peer : options.peers) {
    const status one = backend.can_map({options.gpu_direct_rdma, {peer}});
    if (without_peers && !one.ok()) {
      throw invalid_argument{"device " + std::to_string(peer) +
                             " cannot be a peer of this memory: " + one.call + " ended with code " +
                             std::to_string(one.code) + " (" + backend.describe(one.code) + ")"};
    }
  }
  require_ok(backend, all);
}

}  // namespace pagesift
