// The idle blocks that wait on one stream, by class.
#pragma once

#include <pagesift/back/page_run.hpp>
#include <pagesift/back/request.hpp>
#include <pagesift/core/size_class.hpp>

#include <array>
#include <cstddef>

namespace pagesift {

/// Per class a LIFO list of idle blocks, the newest free first. Not thread-safe.
class stream_cache {
 public:
  [[nodiscard]] bool empty() const noexcept { return blocks_ == 0; }
  [[nodiscard]] const block_list& of(class_index index) const noexcept { return lists_[index]; }

  void push(block& b, last_use use) noexcept {
    b.use = use;
    b.state = block_state::idle;
    lists_[waiting_class(b.run->block_bytes)].push_newest(b);
    ++blocks_;
  }

  /// Puts back a block that was taken as the oldest and not used since.
  void put_back(block& b) noexcept {
    b.state = block_state::idle;
    lists_[waiting_class(b.run->block_bytes)].push_oldest(b);
    ++blocks_;
  }

  void erase(block& b) noexcept {
    lists_[waiting_class(b.run->block_bytes)].erase(b);
    --blocks_;
  }

  /// The largest block that waits here, or null.
  [[nodiscard]] const block* largest() const noexcept {
    for (class_index i = class_count; i-- > 0;) {
      if (!lists_[i].empty()) {
        return lists_[i].newest();
      }
    }
    return nullptr;
  }

  /// Moves every block to `other`, as used last by `use`.
  void move_to(stream_cache& other, last_use use) noexcept {
    for (block_list& list : lists_) {
      while (block* b = list.oldest()) {
        list.erase(*b);
        --blocks_;
        other.push(*b, use);
      }
    }
  }

 private:
  std::array<block_list, class_count> lists_;
  std::size_t blocks_ = 0;
};

}  // namespace pagesift
