// A page heap over addresses that are only numbers.
#pragma once

#include <pagesift/back/page_heap.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

using pagesift::block;
using pagesift::last_use;
using pagesift::page_bytes;
using pagesift::page_heap;
using pagesift::page_run;
using pagesift::quiet_stream;

/// The address of a page by its number.
inline std::byte* page_address(std::uintptr_t number) {
  return reinterpret_cast<std::byte*>(number * page_bytes);  // NOLINT(performance-no-int-to-ptr)
}

/// Gives the heap an acquisition of `pages` pages from page `number` on.
inline void add_acquisition(page_heap& heap, std::uintptr_t number, std::size_t pages) {
  heap.add(heap.prepare(pages), page_address(number), pages * page_bytes);
}

/// Takes pages and cuts them into one block.
inline page_run* take_whole(page_heap& heap, pagesift::stream_id stream, std::size_t pages) {
  page_run* const run = heap.take(stream, pages);
  if (run != nullptr) {
    heap.cut(*run, pages * page_bytes, 1);
  }
  return run;
}

/// The same `count` times.
inline std::vector<page_run*> take_whole_runs(page_heap& heap, pagesift::stream_id stream,
                                              std::size_t count, std::size_t pages) {
  std::vector<page_run*> runs(count);
  std::generate(runs.begin(), runs.end(), [&] { return take_whole(heap, stream, pages); });
  return runs;
}
