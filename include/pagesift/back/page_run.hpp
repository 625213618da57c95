// Runs: neighbouring pages of one range, either free or cut into blocks of one size.
#pragma once

#include <pagesift/back/block.hpp>
#include <pagesift/core/bytes.hpp>
#include <pagesift/core/size_class.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

namespace pagesift {

/// Unit of the page heap: the smallest piece of memory that CUDA's virtual memory calls map.
inline constexpr std::size_t page_bytes = 2 * mebibyte;
static_assert(page_bytes % max_alignment == 0, "a run must start at any alignment asked for");

/// Blocks above this get a run of their own; up to it they share slabs.
inline constexpr std::size_t max_slab_block_bytes = mebibyte;

/// Pages of a slab for blocks of `block_bytes`: as few as leave at most 1/8 of the slab over.
[[nodiscard]] constexpr std::size_t slab_pages(std::size_t block_bytes) noexcept {
  std::size_t pages = 1;
  while ((pages * page_bytes) % block_bytes > pages * page_bytes / 8) {
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

struct page_run;

/// One piece of memory from the backend, seen as whole pages.
struct page_range {
  void* acquired = nullptr;        ///< as the backend gave it
  std::size_t acquired_bytes = 0;  ///< as asked of the backend
  std::byte* base = nullptr;       ///< first page boundary at or after `acquired`
  std::size_t pages = 0;
  std::size_t quiet_pages = 0;     ///< pages in quiet free runs
  std::uint64_t last_touched = 0;  ///< the heap's tick when a run was last taken or given back
  std::uint64_t last_batch = 0;    ///< the batch in which a run was last taken
  /// The run that owns each page. Right for the first and last page of a free run and for all
  /// pages of a cut one; other entries may be stale and are checked before use.
  std::vector<page_run*> owner;

  [[nodiscard]] bool all_quiet() const noexcept { return quiet_pages == pages; }
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

/// Neighbouring pages. A cut run holds `capacity` blocks of `block_bytes`: many (a slab) or one.
struct page_run {
  page_range* range = nullptr;
  std::size_t first = 0;  ///< index of its first page in the range
  std::size_t pages = 0;
  bool cut = false;
  last_use use;  ///< free: of the run; cut: of the blocks that were not handed out since the cut
  free_run_index::node_type node;  ///< its place in the index of free runs, kept here while cut

  // Meaningful while cut.
  std::size_t block_bytes = 0;
  class_index waiting = 0;  ///< the class at which its idle blocks wait
  std::size_t capacity = 0;
  std::size_t cut_blocks = 0;  ///< the first so many blocks have been handed out at least once
  bool leaving = false;        ///< on its way back to the page heap
  std::unique_ptr<block[]> blocks;

  [[nodiscard]] std::byte* base() const noexcept { return range->base + first * page_bytes; }
  [[nodiscard]] std::size_t bytes() const noexcept { return pages * page_bytes; }
  [[nodiscard]] bool has_uncut() const noexcept { return cut_blocks < capacity; }
};

inline bool free_run_order::operator()(const page_run* a, const page_run* b) const noexcept {
  if (a->use.stream != b->use.stream) {
    return a->use.stream < b->use.stream;
  }
  return a->pages != b->pages ? a->pages < b->pages : a->base() < b->base();
}

inline bool free_run_order::operator()(const page_run* a, const key& k) const noexcept {
  return a->use.stream != k.stream ? a->use.stream < k.stream : a->pages < k.pages;
}

}  // namespace pagesift
