// The page heap by itself: finding blocks, splitting and joining runs.
#include "heap_scene.hpp"

#include <pagesift/core/bytes.hpp>

#include <doctest/doctest.h>

#include <vector>

TEST_CASE("each block of a slab is found by its address, and nothing between blocks") {
  for (pagesift::class_index i = 0; i <= pagesift::class_of(pagesift::max_slab_block_bytes); ++i) {
    page_heap heap;
    const std::size_t bytes = pagesift::block_bytes(i);
    const std::size_t pages = pagesift::slab_pages(bytes);
    add_acquisition(heap, 4090, pages + 10);
    page_run& run = *heap.take(1, pages);
    const std::size_t capacity = pages * page_bytes / bytes;
    heap.cut(run, bytes, capacity);
    bool right = true;
    for (std::size_t b = 0; b < capacity; ++b) {
      const std::byte* const start = run.base() + b * bytes;
      right = right && heap.find(start) == &run.blocks[b] && heap.find(start + 1) == nullptr &&
              heap.find(start + bytes - 1) == nullptr;
    }
    CHECK_MESSAGE(right, "blocks of ", bytes, " bytes");
    CHECK(heap.find(run.base() + capacity * bytes) == nullptr);
    CHECK(heap.find(run.base() - 1) == nullptr);
  }
}

TEST_CASE("a block of many pages is found by its start alone") {
  page_heap heap;
  add_acquisition(heap, 1000, 40);
  page_run* const run = take_whole(heap, 1, 30);
  CHECK(heap.find(run->base()) == &run->blocks[0]);
  CHECK(heap.find(run->base() + 256) == nullptr);
  CHECK(heap.find(run->base() + page_bytes) == nullptr);
  CHECK(heap.find(run->end() - page_bytes) == nullptr);
  CHECK(heap.find(run->end()) == nullptr);
}

TEST_CASE("no address of a run that was given back is found, whatever becomes of its pages") {
  page_heap heap;
  add_acquisition(heap, 1000, 8);
  page_run* const slab = heap.take(1, 2);
  heap.cut(*slab, 768 * pagesift::kibibyte, 5);
  std::byte* const base = slab->base();
  heap.give(*slab, last_use{});
  for (std::size_t page = 0; page < 8; ++page) {
    CHECK(heap.find(base + page * page_bytes) == nullptr);
  }
  page_run* const large = take_whole(heap, 1, 8);
  CHECK(heap.find(base) == &large->blocks[0]);
  CHECK(heap.find(base + page_bytes) == nullptr);  // a block of the slab stood there
}

TEST_CASE("neighbours of one owner are one run again, in whatever order they come back") {
  page_heap heap;
  add_acquisition(heap, 1000, 9);
  for (const std::vector<int>& order :
       {std::vector<int>{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
    std::vector<page_run*> runs;
    for (int i = 0; i < 3; ++i) {
      runs.push_back(take_whole(heap, 1, 3));
      REQUIRE(runs.back() != nullptr);
    }
    CHECK(heap.take(1, 1) == nullptr);
    for (const int i : order) {
      heap.give(*runs[static_cast<std::size_t>(i)], last_use{});
    }
    CHECK(heap.longest_free_run() == 9);
  }
}

TEST_CASE("acquisitions that lie side by side are not joined") {
  page_heap heap;
  add_acquisition(heap, 1004, 4);
  add_acquisition(heap, 1000, 4);
  CHECK(heap.longest_free_run() == 4);
  CHECK(heap.take(1, 5) == nullptr);
}

TEST_CASE("the shortest run that is long enough is taken, the lowest of equals") {
  page_heap heap;
  add_acquisition(heap, 5000, 6);
  add_acquisition(heap, 3000, 4);
  add_acquisition(heap, 1000, 9);
  add_acquisition(heap, 2000, 4);
  CHECK(take_whole(heap, 1, 3)->base() == page_address(2000));
  CHECK(take_whole(heap, 1, 3)->base() == page_address(3000));
  CHECK(take_whole(heap, 1, 5)->base() == page_address(5000));
  CHECK(take_whole(heap, 1, 7)->base() == page_address(1000));
}

TEST_CASE("a stream's pages serve that stream alone until they are complete") {
  page_heap heap;
  add_acquisition(heap, 1000, 4);
  heap.give(*take_whole(heap, 1, 4), last_use{1, 10});
  CHECK(heap.take(2, 1) == nullptr);
  CHECK(heap.take(quiet_stream, 1) == nullptr);
  heap.promote(1, 9);
  CHECK(heap.take(2, 1) == nullptr);
  heap.promote(1, 10);
  CHECK(take_whole(heap, 2, 4) != nullptr);
}

TEST_CASE("complete runs among others of their stream become quiet, and join") {
  page_heap heap;
  add_acquisition(heap, 1000, 9);
  const std::vector<page_run*> runs = take_whole_runs(heap, 1, 3, 3);
  heap.give(*runs[0], last_use{1, 5});
  heap.give(*runs[2], last_use{1, 7});
  heap.promote(1, 6);
  CHECK(heap.take(2, 4) == nullptr);
  CHECK(heap.owns_free_run(1));
  heap.give(*runs[1], last_use{});
  CHECK(heap.longest_free_run() == 6);
  heap.promote(1, 7);
  CHECK_FALSE(heap.owns_free_run(1));
  CHECK(heap.longest_free_run() == 9);
}

TEST_CASE("joined pages wait for the later of their last uses") {
  for (const bool later_first : {false, true}) {
    CAPTURE(later_first);
    page_heap heap;
    add_acquisition(heap, 1000, 6);
    const std::vector<page_run*> runs = take_whole_runs(heap, 1, 2, 3);
    heap.give(*runs[later_first ? 0 : 1], last_use{1, 7});
    heap.give(*runs[later_first ? 1 : 0], last_use{1, 5});
    CHECK(heap.longest_free_run() == 6);
    heap.promote(1, 6);
    CHECK(heap.take(2, 1) == nullptr);
    heap.promote(1, 7);
    CHECK(heap.take(2, 6) != nullptr);
  }
}

TEST_CASE("pages that a block gave up are not joined with what lay before them in former times") {
  page_heap heap;
  add_acquisition(heap, 1000, 8);
  page_run* const former = take_whole(heap, 1, 5);  // ends where the block will
  page_run* const rest = take_whole(heap, 1, 3);
  heap.give(*former, last_use{});
  heap.give(*rest, last_use{});
  add_acquisition(heap, 2000, 4);  // free, and in the object of one that is no more
  page_run* const run = take_whole(heap, 1, 8);
  REQUIRE(run != nullptr);
  heap.shorten(*run, 5, last_use{});
  CHECK(heap.longest_free_run() == 4);
}

TEST_CASE("quiet pages and a stream's own are joined for that stream where neither suffices") {
  page_heap heap;
  add_acquisition(heap, 1000, 9);
  const std::vector<page_run*> runs = take_whole_runs(heap, 1, 3, 3);
  heap.give(*runs[0], last_use{});
  heap.give(*runs[1], last_use{1, 5});
  heap.give(*runs[2], last_use{});
  CHECK(heap.take(2, 4) == nullptr);
  page_run* const joined = heap.take(1, 8);
  REQUIRE(joined != nullptr);
  CHECK(joined->base() == page_address(1000));
  CHECK(joined->use.stream == 1);
  CHECK(joined->use.freed == 5);
  CHECK(heap.take(2, 1) == nullptr);  // the rest of the last one is the stream's now
}

TEST_CASE("every cut run is visited once, in order, also while runs are given back") {
  page_heap heap;
  add_acquisition(heap, 1000, 12);
  add_acquisition(heap, 2000, 4);
  std::vector<page_run*> runs;
  for (const std::size_t pages : {4U, 3U, 2U, 4U, 3U}) {
    runs.push_back(take_whole(heap, 1, pages));
  }
  std::vector<const std::byte*> seen;
  heap.for_each_cut_run([&](page_run& run) {
    seen.push_back(run.base());
    if (seen.size() % 2 == 0) {
      heap.give(run, last_use{});
    }
  });
  CHECK(seen.size() == 5);
  CHECK(std::is_sorted(seen.begin(), seen.end()));
  seen.clear();
  heap.for_each_cut_run([&](page_run& run) { heap.give(run, last_use{}); });
  CHECK(heap.longest_free_run() == 12);
}
