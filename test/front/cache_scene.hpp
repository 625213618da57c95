// Blocks to put into caches, without a pool or memory.
#pragma once

#include <pagesift/core/bytes.hpp>
#include <pagesift/front/stream_cache.hpp>

#include <array>
#include <cstddef>

/// Eight blocks of one class, in no cache.
struct cut_blocks {
  explicit cut_blocks(std::size_t bytes) {
    run.block_bytes = bytes;
    run.waiting = pagesift::class_of(bytes);
    run.capacity = blocks.size();
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      blocks[i].address = memory.data() + i;
      blocks[i].run = &run;
      blocks[i].requested = static_cast<std::uint16_t>(run.waiting);
      blocks[i].set(pagesift::block_state::taken);
    }
  }

  [[nodiscard]] pagesift::class_index index() const { return run.waiting; }
  pagesift::block& operator[](std::size_t i) { return blocks[i]; }

  std::array<std::byte, 8> memory{};  ///< addresses that differ; nobody looks behind them
  pagesift::page_run run;
  std::array<pagesift::block, 8> blocks;
};
