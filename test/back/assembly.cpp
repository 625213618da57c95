// How memory comes to a heap of reserved addresses, moves in it and goes: the bookkeeping alone.
#include "heap_scene.hpp"

#include <doctest/doctest.h>

#include <vector>

using pagesift::assembly;
using pagesift::assembly_terms;
using pagesift::assembly_verdict;
using pagesift::granule;
using pagesift::piece_state;

namespace {

constexpr std::uintptr_t first_page = 100000;

/// Moves, and at most so much new memory in granules of `piece` pages.
assembly_terms moves_and(std::size_t most_new, std::size_t piece) {
  assembly_terms terms;
  terms.most_new = most_new;
  terms.smallest_piece = terms.largest_piece = piece;
  return terms;
}

assembly_terms moves_alone() { return moves_and(0, 1); }

assembly_terms new_memory(std::size_t most_new, std::size_t piece) {
  assembly_terms terms = moves_and(most_new, piece);
  terms.moves = false;
  return terms;
}

/// A heap with one reservation of `pages` pages.
struct mapped_heap {
  explicit mapped_heap(std::size_t pages) {
    heap.add_reservation(heap.prepare_reservation(), page_address(first_page), pages * page_bytes);
  }

  /// Ends an assembly as if all its calls had succeeded.
  void succeed(assembly& a) {
    for (pagesift::assembly_piece& p : a.pieces) {
      p.state = piece_state::at_target;
    }
    heap.finish(a);
  }

  /// New memory of `pages` pages in pieces of `piece`, for stream 1.
  void grow(std::size_t pages, std::size_t piece) {
    assembly a = heap.assemble(1, pages, new_memory(pages, piece));
    REQUIRE(a.verdict == assembly_verdict::ready);
    CHECK(a.new_pages() == pages);
    succeed(a);
  }

  page_heap heap;
};

std::size_t length(const granule* g) { return g == nullptr ? 0 : 1 + length(g->next); }

}  // namespace

TEST_CASE("new granules that lie side by side are one run") {
  mapped_heap m{100};
  m.grow(10, 4);
  CHECK(m.heap.longest_free_run() == 10);
  CHECK(m.heap.granule_count() == 3);
  CHECK(take_whole(m.heap, 1, 10)->base() == page_address(first_page));
}

TEST_CASE("new memory comes beside the free run that leaves least to create") {
  mapped_heap m{100};
  m.grow(20, 10);
  page_run* const lower = take_whole(m.heap, 1, 10);
  page_run* const used = take_whole(m.heap, 1, 6);
  m.heap.give(*lower, last_use{});
  m.heap.forget(*m.heap.remove_oldest(10, page_heap::any_batch));
  assembly a = m.heap.assemble(1, 7, new_memory(50, 50));  // the hole below is long enough
  CHECK(a.new_pages() == 3);
  m.succeed(a);
  CHECK(take_whole(m.heap, 1, 7)->base() == used->end());
}

TEST_CASE("released addresses are used again before others") {
  mapped_heap m{100};
  m.grow(10, 5);
  page_run* const second = m.heap.take(1, 5);
  m.heap.cut(*second, second->bytes(), 1);
  granule* const released = m.heap.remove_oldest(5, page_heap::any_batch);
  REQUIRE(length(released) == 1);
  std::byte* const hole = released->start;
  m.heap.forget(*released);
  assembly a = m.heap.assemble(1, 4, new_memory(50, 4));
  REQUIRE(a.pieces.size() == 1);
  CHECK(a.pieces[0].part->base() == hole);
  m.succeed(a);
}

TEST_CASE("quiet granules that lie apart are moved together, and their addresses become holes") {
  mapped_heap m{100};
  m.grow(12, 4);
  const std::vector<page_run*> runs = take_whole_runs(m.heap, 1, 3, 4);
  m.heap.give(*runs[0], last_use{});
  m.heap.give(*runs[2], last_use{});
  CHECK(m.heap.take(2, 8) == nullptr);
  CHECK(m.heap.movable_pages() == 8);
  assembly a = m.heap.assemble(2, 8, moves_alone());
  REQUIRE(a.verdict == assembly_verdict::ready);
  CHECK(a.pieces.size() == 1);          // beside the one that lies at the frontier
  CHECK(m.heap.take(2, 1) == nullptr);  // nobody else finds what is on its way
  m.succeed(a);
  CHECK(m.heap.find(page_address(first_page)) == nullptr);
  CHECK(take_whole(m.heap, 2, 8) != nullptr);
  CHECK(m.heap.granule_count() == 3);
}

TEST_CASE("a granule that a stream may still use, or that is free in part, is not moved") {
  mapped_heap m{100};
  m.grow(16, 4);
  std::vector<page_run*> runs;
  for (const std::size_t pages : {4U, 4U, 3U, 1U, 4U}) {
    runs.push_back(take_whole(m.heap, 1, pages));
  }
  m.heap.give(*runs[0], last_use{1, 5});
  m.heap.give(*runs[2], last_use{});
  CHECK(m.heap.movable_pages() == 0);
  CHECK(m.heap.assemble(2, 4, moves_alone()).verdict == assembly_verdict::no_memory);
  m.heap.promote(1, 5);
  CHECK(m.heap.movable_pages() == 4);
}

TEST_CASE("few granules are moved: the largest that fit, and the shortest that is long enough") {
  std::vector<granule> granules(5);
  page_run run;
  std::vector<pagesift::quiet_granule> candidates;
  const std::size_t pages[] = {2, 16, 7, 32, 4};
  for (std::size_t i = 0; i < 5; ++i) {
    granules[i].pages = pages[i];
    candidates.push_back({&granules[i], &run});
  }
  const auto chosen = [&](std::size_t fill, std::size_t most_new) {
    std::vector<std::size_t> sizes;
    const std::size_t count = pagesift::choose_moves(candidates, fill, most_new);
    for (std::size_t i = 0; i < count; ++i) {
      sizes.push_back(candidates[i].piece->pages);
    }
    std::sort(sizes.begin(), sizes.end());
    return sizes;
  };
  CHECK(chosen(48, 0) == std::vector<std::size_t>{16, 32});
  CHECK(chosen(20, 0) == std::vector<std::size_t>{4, 16});
  CHECK(chosen(21, 1) == std::vector<std::size_t>{4, 16});
  CHECK(chosen(3, 0) == std::vector<std::size_t>{4});
  CHECK(chosen(17, 0) == std::vector<std::size_t>{2, 16});
  CHECK(chosen(61, 0) == std::vector<std::size_t>{2, 4, 7, 16, 32});
  CHECK(chosen(62, 0).empty());
  CHECK(chosen(0, 0).empty());
}

TEST_CASE("an assembly that failed leaves each piece where its memory stands") {
  mapped_heap m{100};
  m.grow(12, 4);
  const std::vector<page_run*> runs = take_whole_runs(m.heap, 1, 3, 4);
  m.heap.give(*runs[0], last_use{});
  assembly a = m.heap.assemble(2, 10, moves_and(6, 3));
  REQUIRE(a.pieces.size() == 3);
  std::size_t held = 8;
  SUBCASE("all where it was") { held = 12; }
  SUBCASE("the moved one lost") { a.pieces[0].state = piece_state::nowhere; }
  SUBCASE("a new one at its target") {
    a.pieces[1].state = piece_state::at_target;
    held = 15;
  }
  m.heap.finish(a);
  m.heap.give(*runs[1], last_use{});
  m.heap.give(*runs[2], last_use{});
  std::size_t left = 0;
  for (granule* g = m.heap.remove_oldest(100, page_heap::any_batch); g != nullptr;) {
    granule& gone = *g;
    g = g->next;
    left += gone.pages;
    m.heap.forget(gone);
  }
  CHECK(left == held);
  CHECK(m.heap.granule_count() == 0);
  CHECK(m.heap.remove_empty_reservation() != nullptr);  // all addresses are one hole again
}

TEST_CASE("granules are released oldest first, no more than needed, of a run in any place") {
  mapped_heap m{100};
  m.grow(20, 2);
  const std::vector<page_run*> runs = take_whole_runs(m.heap, 1, 10, 2);
  for (const std::size_t i : {4U, 9U, 0U, 3U, 5U, 1U, 2U, 6U, 7U, 8U}) {
    m.heap.give(*runs[i], last_use{});
  }
  granule* g = m.heap.remove_oldest(5, page_heap::any_batch);
  REQUIRE(length(g) == 3);
  CHECK(g->start == page_address(first_page + 8));
  CHECK(g->next->start == page_address(first_page + 18));
  CHECK(g->next->next->start == page_address(first_page));
  CHECK(m.heap.longest_free_run() == 8);  // from 10 to 18
  for (; g != nullptr; g = g->next) {
    m.heap.put_back(*g);
  }
  CHECK(m.heap.longest_free_run() == 20);
}

TEST_CASE("granules from which a batch has taken pages are not released for an earlier one") {
  mapped_heap m{100};
  m.grow(8, 4);
  page_run* const run = take_whole(m.heap, 1, 4);
  m.heap.next_batch();
  m.heap.give(*run, last_use{});
  granule* const g = m.heap.remove_oldest(100, m.heap.batch());
  CHECK(length(g) == 2);
  m.heap.put_back(*g->next);
  m.heap.put_back(*g);
  m.heap.give(*take_whole(m.heap, 1, 4), last_use{});
  CHECK(length(m.heap.remove_oldest(100, m.heap.batch())) == 1);
}

TEST_CASE("a block in use gives up its last pages, and is found as before") {
  mapped_heap m{100};
  m.grow(8, 8);
  page_run* const run = take_whole(m.heap, 1, 8);
  m.heap.shorten(*run, 5, last_use{1, 3});
  CHECK(run->bytes() == 5 * page_bytes);
  CHECK(run->block_bytes == 5 * page_bytes);
  CHECK(m.heap.find(run->base()) == &run->blocks[0]);
  CHECK(m.heap.find(run->end()) == nullptr);
  CHECK(m.heap.take(2, 3) == nullptr);
  m.heap.promote(1, 3);
  CHECK(take_whole(m.heap, 2, 3)->base() == run->end());
  m.heap.give(*run, last_use{});
  CHECK(m.heap.longest_free_run() == 5);
}

TEST_CASE("where no hole is long enough, more addresses are asked for") {
  mapped_heap m{10};
  CHECK(m.heap.assemble(1, 11, moves_and(50, 50)).verdict == assembly_verdict::no_addresses);
  CHECK(m.heap.assemble(1, 10, moves_and(9, 50)).verdict == assembly_verdict::no_memory);
  m.heap.add_reservation(m.heap.prepare_reservation(), page_address(first_page + 10),
                         20 * page_bytes);
  assembly a = m.heap.assemble(1, 11, moves_and(50, 50));
  CHECK(a.verdict == assembly_verdict::ready);
  m.succeed(a);
}

TEST_CASE(
    "a hole that is longer than memory lasts is not filled, if less would do beside one run") {
  mapped_heap m{100};
  std::vector<page_run*> runs;
  for (const std::size_t pages : {std::size_t{10}, std::size_t{13}, std::size_t{34}}) {
    m.grow(pages, pages);
    runs.push_back(take_whole(m.heap, 1, pages));
  }
  m.heap.give(*runs[1], last_use{});
  m.heap.forget(*m.heap.remove_oldest(13, page_heap::any_batch));
  m.heap.give(*runs[0], last_use{});
  m.heap.give(*runs[2], last_use{});
  assembly a = m.heap.assemble(2, 48, moves_and(12, 12));  // 13 between the two, 14 beside the last
  REQUIRE(a.verdict == assembly_verdict::ready);
  CHECK(a.new_pages() == 4);
  m.succeed(a);
  CHECK(take_whole(m.heap, 2, 48) != nullptr);
}
