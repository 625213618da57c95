// Runs: neighbouring pages of one space, all in the same state.
#pragma once

#include <pagesift/back/address_map.hpp>
#include <pagesift/back/block.hpp>
#include <pagesift/back/block_index.hpp>
#include <pagesift/core/bytes.hpp>
#include <pagesift/core/size_class.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>

namespace pagesift {

static_assert(page_bytes % max_alignment == 0, "a run must start at any alignment asked for");

/// Blocks above this get a run of their own; up to it they share slabs, since whole pages would
/// leave much of a page over.
inline constexpr std::size_t max_slab_block_bytes = 8 * mebibyte;

/// Pages of a slab for blocks of `block_bytes`: as few as leave at most 1/32 of the slab over; of
/// blocks above 1 MiB, which make most of the bytes in slabs, at most 1/64.
[[nodiscard]] constexpr std::size_t slab_pages(std::size_t block_bytes) noexcept {
  const std::size_t part = block_bytes <= mebibyte ? 32 : 64;
  std::size_t pages = divide_round_up(block_bytes, page_bytes);
  while ((pages * page_bytes) % block_bytes > pages * page_bytes / part) {
    ++pages;
  }
  return pages;
}

/// The class at which an idle block of `bytes` waits: the largest whose block size it reaches.
/// For a block of a slab that is its own class; a large block may have more pages than its class.
[[nodiscard]] constexpr class_index waiting_class(std::size_t bytes) noexcept {
  const class_index index = class_of(bytes);
  return block_bytes(index) > bytes ? index - 1 : index;
}

struct granule;
struct page_run;

/// A stretch of addresses tiled by runs: one acquisition, or a reservation in which granules are
/// mapped. Runs of different spaces are never joined.
struct page_space {
  void* acquired = nullptr;        ///< as the backend gave it
  std::size_t acquired_bytes = 0;  ///< as asked of the backend
  std::byte* base = nullptr;       ///< first page boundary at or after `acquired`
  std::size_t pages = 0;
  granule* whole = nullptr;  ///< of an acquisition: the granule that it is

  [[nodiscard]] std::byte* end() const noexcept { return base + pages * page_bytes; }
};

/// Orders free runs by owner, length, address: the first one of an owner that is long enough is
/// its best fit at the lowest address.
struct free_run_order {
  struct key {
    stream_id stream;
    std::size_t pages;
  };
  using is_transparent = void;
  bool operator()(const page_run* a, const page_run* b) const noexcept;
  bool operator()(const page_run* a, const key& k) const noexcept;
};

using free_run_index = std::set<page_run*, free_run_order>;

/// `hole`: addresses without memory. `taken`: on its way from one of the others to another; nobody
/// but who took it touches it.
enum class run_state : unsigned char { taken, free, hole, cut };

/// Neighbouring pages. A cut run holds `capacity` blocks of `block_bytes`: many (a slab) or one.
///
/// Run objects are kept for reuse as long as their heap lives; the blocks go when a run is given
/// back. So what `page_heap::find` reads stays valid for an address of a block in use.
struct page_run {
  page_space* space = nullptr;
  std::byte* start = nullptr;
  std::size_t pages = 0;
  run_state state = run_state::taken;
  last_use use;  ///< free: of the run; cut: of the blocks that were not handed out since the cut
  free_run_index::node_type node;  ///< its place in an index of runs, kept here while in none

  // Meaningful while cut.
  std::size_t block_bytes = 0;
  class_index waiting = 0;  ///< the class at which its idle blocks wait
  std::size_t capacity = 0;
  block_index index;
  std::size_t cut_blocks = 0;  ///< the first so many blocks have been handed out at least once
  std::size_t shared = 0;      ///< its place among the cut runs of slab classes, if it is one
  bool leaving = false;        ///< on its way back to the page heap
  std::unique_ptr<block[]> blocks;

  [[nodiscard]] std::byte* base() const noexcept { return start; }
  [[nodiscard]] std::byte* end() const noexcept { return start + bytes(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return pages * page_bytes; }
  [[nodiscard]] bool has_uncut() const noexcept { return cut_blocks < capacity; }
};

inline bool free_run_order::operator()(const page_run* a, const page_run* b) const noexcept {
  if (a->use.stream != b->use.stream) {
    return a->use.stream < b->use.stream;
  }
  return a->pages != b->pages ? a->pages < b->pages : a->start < b->start;
}

inline bool free_run_order::operator()(const page_run* a, const key& k) const noexcept {
  return a->use.stream != k.stream ? a->use.stream < k.stream : a->pages < k.pages;
}

/// Orders runs by address.
struct address_order {
  bool operator()(const page_run* a, const page_run* b) const noexcept {
    return a->start < b->start;
  }
};

/// Takes the same nodes as `free_run_index`.
using hole_index = std::set<page_run*, address_order>;

}  // namespace pagesift
