// A block: what a user gets. Its bookkeeping lies out of band; the block itself is never touched.
#pragma once

#include <pagesift/backend/backend.hpp>
#include <pagesift/core/size_class.hpp>

#include <cstddef>
#include <cstdint>

namespace pagesift {

struct page_run;

/// Numbers the stretches of a stream's life between two seals; counted up across a pool's streams,
/// so an epoch never repeats.
using epoch = std::uint64_t;

/// Stands for no stream: the host has seen the last use complete, any stream may take the memory.
inline constexpr stream_id quiet_stream = ~stream_id{0};

/// Stands for a stream that cannot be named (it was capturing, or the caller did not know it):
/// only a fence of the whole context shows that the last use is complete.
inline constexpr stream_id unordered_stream = ~stream_id{0} - 1;

/// Where idle memory was last used: on `stream`, before the seal of epoch `freed`.
struct last_use {
  stream_id stream = quiet_stream;
  epoch freed = 0;

  [[nodiscard]] bool quiet() const noexcept { return stream == quiet_stream; }
};

/// `taken`: out of every cache, on its way to a user or back.
enum class block_state : unsigned char { uncut, idle, taken, in_use };

/// One block of a run. Linked into its stream's cache while idle, so a free allocates nothing.
struct block {
  std::byte* address = nullptr;
  page_run* run = nullptr;
  block* older = nullptr;
  block* newer = nullptr;
  last_use use;               ///< while idle; while in use: its `stream`, that got the block
  class_index requested = 0;  ///< class of the request it serves, while in use
  block_state state = block_state::uncut;
  std::size_t needed_pages = 0;  ///< of a large block in use: what its request needs; else 0
};

/// Idle blocks of one stream and class, in the order of their frees.
class block_list {
 public:
  [[nodiscard]] bool empty() const noexcept { return newest_ == nullptr; }
  [[nodiscard]] block* oldest() const noexcept { return oldest_; }
  [[nodiscard]] block* newest() const noexcept { return newest_; }

  void push_newest(block& b) noexcept {
    b.older = newest_;
    b.newer = nullptr;
    (newest_ != nullptr ? newest_->newer : oldest_) = &b;
    newest_ = &b;
  }

  /// Puts back a block that was taken as the oldest.
  void push_oldest(block& b) noexcept {
    b.newer = oldest_;
    b.older = nullptr;
    (oldest_ != nullptr ? oldest_->older : newest_) = &b;
    oldest_ = &b;
  }

  void erase(block& b) noexcept {
    (b.older != nullptr ? b.older->newer : oldest_) = b.newer;
    (b.newer != nullptr ? b.newer->older : newest_) = b.older;
    b.older = b.newer = nullptr;
  }

 private:
  block* oldest_ = nullptr;
  block* newest_ = nullptr;
};

}  // namespace pagesift
