// How a pool is set up.
#pragma once

#include <pagesift/backend/virtual_memory.hpp>
#include <pagesift/core/bytes.hpp>
#include <pagesift/pool/checked/misuse_report.hpp>

#include <cstddef>
#include <functional>

namespace pagesift {

/// No limit on the bytes a pool may hold.
inline constexpr std::size_t no_limit = static_cast<std::size_t>(-1);

/// What a pool checks at each call.
enum class checks : unsigned char {
  /// As the environment variable PAGESIFT_CHECKS says when the pool is made (standard, trusted or
  /// full; anything else is refused); `standard` where it is not set.
  automatic,
  /// A request on a bound stream asks whether the stream captures; a block freed twice is left
  /// alone the second time, also when two threads do it at once.
  standard,
  /// The caller promises that no bound stream captures when it is asked for memory, that the device
  /// is not reset while one is used, and that no two threads free the same block at once. Saves a
  /// call into the driver and an atomic exchange; all
  /// that orders memory between streams stays as it is.
  trusted,
  /// For debugging: every block is looked at when it is handed out and when it is freed, and
  /// mistakes are reported (`on_misuse`). No request takes the short way, each block needs 512 to
  /// 767 bytes more, a free waits for its stream (docs/debugging.md).
  full
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

  /// Taken from the backend at once, rounded up to whole pages. So rounded, at most `limit_bytes`.
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

  /// `options()` of a pool says what it came to.
  pagesift::checks checks = pagesift::checks::automatic;

  /// Told of each mistake that `checks::full` finds, and of the blocks still in use when the pool
  /// is destroyed; called in the thread that found it, without a lock, and must not throw. If it
  /// returns, the pool goes on: what was freed wrongly is left alone. Without it a report is
  /// printed on stderr, and unless it is about a leak the process is aborted.
  std::function<void(const misuse_report&)> on_misuse;

  /// With `checks::full`, also report a block freed on another stream than it was allocated on.
  /// That is legal where the caller made the one wait for the other, which the pool cannot see.
  bool report_stream_changes = false;

  /// Tell tools about each block, by NVTX's memory registration, so that compute-sanitizer reports
  /// accesses outside of blocks. Memory is then `backing::plain`, and no request takes the short
  /// way. Without effect where the CUDA Toolkit has no nvtx3/nvToolsExtMem.h, or no tool listens.
  bool announce = false;

  /// `peak_in_use` is the true peak although several threads or streams use the pool; else it may
  /// be above it (see `pool_stats`). Costs two atomic additions a pair, on a line that all threads
  /// share.
  bool exact_peaks = false;

  /// Asked for memory when the pool has found none, before `out_of_memory` is thrown: gets the
  /// bytes wanted, returns whether it freed anything, into this pool or elsewhere. Called without
  /// a lock, at most `max_shortage_calls` times for one request. It may use pools; it is not asked
  /// for what it requests of this one itself, nor for what a giver requests that is being asked
  /// (`on_shortage_of`). What it throws comes out of the request.
  std::function<bool(std::size_t bytes)> on_shortage;
};

/// Bound on the calls of `pool_options::on_shortage` for one request.
inline constexpr int max_shortage_calls = 8;

}  // namespace pagesift
