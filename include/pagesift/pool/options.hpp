// How a pool is set up.
#pragma once

#include <pagesift/backend/virtual_memory.hpp>
#include <pagesift/core/bytes.hpp>

#include <cstddef>
#include <functional>

namespace pagesift {

/// No limit on the bytes a pool may hold.
inline constexpr std::size_t no_limit = static_cast<std::size_t>(-1);

/// What a pool checks at each call.
enum class checks : unsigned char {
  /// A request on a bound stream asks whether the stream captures; a block freed twice is left
  /// alone the second time, also when two threads do it at once.
  standard,
  /// The caller promises that no bound stream captures when it is asked for memory, and that no two
  /// threads free the same block at once. Saves a call into the driver and an atomic exchange; all
  /// that orders memory between streams stays as it is.
  trusted
};

/// Where a pool's memory comes from.
enum class backing : unsigned char {
  automatic,       ///< virtual memory where it works, else plain
  virtual_memory,  ///< pieces mapped behind reserved addresses: they can be moved together
  plain            ///< acquisitions (cudaMalloc): what legacy IPC handles and some libraries need
};

/// Options of a pool. Sizes are bytes.
struct pool_options {
  /// Device whose memory is pooled; -1 is the current one. The host backend has device 0 only.
  int device = -1;

  /// The pool never holds more than this, rounded down to whole pages of 2 MiB. At least one page.
  std::size_t limit_bytes = no_limit;

  /// Taken from the backend at once, rounded up to whole pages. At most `limit_bytes`.
  std::size_t initial_bytes = 0;

  /// With `virtual_memory` a pool cannot be made where the backend has none; what it throws says
  /// why.
  pagesift::backing backing = pagesift::backing::automatic;

  /// What virtual memory must be good for. Anything that is asked for here makes virtual memory a
  /// must, unless the backing is `plain`, which ignores it.
  mapping_options mapping;

  /// Once the pool has seen a second stream, a free that brings the bytes that no event covers, of
  /// what its thread freed on that stream, to this many records an event; ever more rarely while no
  /// other stream misses for it (docs/decisions/0013-seals-nobody-asked-for-become-rarer.md).
  /// Smaller: memory crosses streams sooner, at the price of an event call (about 0.2 us alone, 4
  /// us with 16 threads on an H200) each time.
  std::size_t seal_bytes = 32 * mebibyte;

  pagesift::checks checks = pagesift::checks::standard;

  /// `peak_in_use` is the true peak although several threads or streams use the pool; else it may
  /// be above it (see `pool_stats`). Costs two atomic additions a pair, on a line that all threads
  /// share.
  bool exact_peaks = false;

  /// Asked for memory when the pool has found none, before `out_of_memory` is thrown: gets the
  /// bytes wanted, returns whether it freed anything, into this pool or elsewhere. Called without
  /// a lock, at most `max_shortage_calls` times for one request.
  std::function<bool(std::size_t bytes)> on_shortage;
};

/// Bound on the calls of `pool_options::on_shortage` for one request.
inline constexpr int max_shortage_calls = 8;

}  // namespace pagesift
