// Whether a pool maps its memory or acquires it.
#pragma once

#include <pagesift/back/address_map.hpp>
#include <pagesift/backend/memory_contents.hpp>
#include <pagesift/backend/virtual_memory.hpp>
#include <pagesift/core/error.hpp>
#include <pagesift/pool/options.hpp>

#include <string>

namespace pagesift {

/// Whether memory of this backend is to be mapped behind reserved addresses.
/// \throws invalid_argument where that is a must and the backend has no virtual memory or a peer
/// cannot reach it; backend_error where it is a must and does not work for another reason
template <typename Backend>
[[nodiscard]] bool takes_virtual_memory(const Backend& backend, const pool_options& options) {
  const bool asked = options.mapping.gpu_direct_rdma || !options.mapping.peers.empty();
  const bool must = options.backing == backing::virtual_memory || asked;
  if (options.backing == backing::plain) {
    return false;
  }
  if (options.announce && announces_memory_v<Backend>) {
    if (must) {
      throw invalid_argument{
          "memory that is announced to tools must be plain, not mapped behind reserved addresses"};
    }
    return false;
  }
  if constexpr (is_virtual_backend_v<Backend>) {
    if (must) {
      require_mappable(backend, options.mapping);
      return true;
    }
    return backend.can_map(options.mapping).ok() && page_bytes % backend.granule_bytes() == 0;
  } else {
    if (must) {
      throw invalid_argument{std::string{Backend::memory_name} +
                             " cannot be mapped behind reserved addresses"};
    }
    return false;
  }
}

}  // namespace pagesift
