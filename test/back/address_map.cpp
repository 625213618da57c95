// The map from addresses to objects. The addresses here are numbers: nothing is behind them.
#include <pagesift/back/address_map.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

using pagesift::page_bytes;

namespace {

struct thing {
  int value = 0;
};

using map = pagesift::address_map<thing>;

constexpr std::size_t table_pages = 4096;  // of a leaf

const void* address(std::uintptr_t a) {
  return reinterpret_cast<const void*>(a);  // NOLINT(performance-no-int-to-ptr)
}
const void* page(std::uintptr_t number) { return address(number * page_bytes); }

}  // namespace

TEST_CASE("an address that was never covered has no entry, whatever it is") {
  const map m;
  for (const std::uintptr_t a : {std::uintptr_t{0}, std::uintptr_t{256}, std::uintptr_t{1} << 47,
                                 (std::uintptr_t{1} << 57) - 1, std::uintptr_t{1} << 57,
                                 std::numeric_limits<std::uintptr_t>::max()}) {
    CHECK(m.at(address(a)) == nullptr);
    CHECK(m.published(address(a)) == nullptr);
  }
}

TEST_CASE("an entry holds for every address of its page and for no other page") {
  map m;
  thing t;
  m.reserve_and_cover(page(1000), 3);
  m.set(page(1001), &t);
  CHECK(m.at(page(1001)) == &t);
  CHECK(m.at(address(1001 * page_bytes + 12345)) == &t);
  CHECK(m.at(address(1002 * page_bytes - 1)) == &t);
  CHECK(m.at(page(1000)) == nullptr);
  CHECK(m.at(page(1002)) == nullptr);
  CHECK(m.at(page(1001 + table_pages)) == nullptr);
}

TEST_CASE("only a published entry is found as published") {
  map m;
  thing t;
  m.reserve_and_cover(page(7), 1);
  m.set(page(7), &t);
  CHECK(m.published(page(7)) == nullptr);
  m.publish(page(7), t);
  CHECK(m.published(page(7)) == &t);
  CHECK(m.at(page(7)) == &t);
  m.set(page(7), &t);
  CHECK(m.published(page(7)) == nullptr);
}

TEST_CASE("pages that lie across tables of both levels have entries of their own") {
  const std::uintptr_t middle_pages = std::uintptr_t{table_pages} * table_pages;
  for (const std::uintptr_t edge :
       {std::uintptr_t{table_pages}, middle_pages, 3 * middle_pages + table_pages,
        (std::uintptr_t{1} << 36) - table_pages}) {
    map m;
    std::vector<thing> things(4);
    m.reserve_and_cover(page(edge - 2), 4);
    for (std::size_t i = 0; i < things.size(); ++i) {
      m.set(page(edge - 2 + i), &things[i]);
    }
    for (std::size_t i = 0; i < things.size(); ++i) {
      CHECK(m.at(page(edge - 2 + i)) == &things[i]);
    }
  }
}

TEST_CASE("a stretch of many tables is covered from its first page to its last") {
  map m;
  thing t;
  constexpr std::size_t pages = 5 * table_pages + 1;
  const std::uintptr_t first = 10 * table_pages - 1;
  m.reserve_and_cover(page(first), pages);
  for (std::size_t i = 0; i < pages; i += table_pages) {
    m.set(page(first + i), &t);
    CHECK(m.at(page(first + i)) == &t);
  }
  m.set(page(first + pages - 1), &t);
  CHECK(m.at(page(first + pages - 1)) == &t);
}

TEST_CASE("promises made at once are each kept, in any order") {
  map m;
  thing t;
  std::vector<std::uintptr_t> firsts;
  for (std::uintptr_t i = 1; i <= 8; ++i) {
    firsts.push_back(i * i * table_pages * table_pages / 2 - 1);
    m.reserve(2);
  }
  for (auto first = firsts.rbegin(); first != firsts.rend(); ++first) {
    m.cover(page(*first), 2);
    m.unreserve(2);
    m.set(page(*first + 1), &t);
    CHECK(m.at(page(*first + 1)) == &t);
  }
}

TEST_CASE("whoever finds a published entry sees what was written to its object before") {
  map m;
  constexpr std::size_t pages = 2000;
  std::vector<thing> things(pages);
  std::atomic<bool> wrong{false};
  std::thread reader{[&] {
    for (std::size_t i = 0; i < pages; ++i) {
      const thing* t = nullptr;
      while ((t = m.published(page(3 * table_pages - pages / 2 + i))) == nullptr) {
      }
      wrong = wrong || t->value != static_cast<int>(i) + 1;
    }
  }};
  for (std::size_t i = 0; i < pages; ++i) {
    const void* const p = page(3 * table_pages - pages / 2 + i);
    m.reserve_and_cover(p, 1);
    things[i].value = static_cast<int>(i) + 1;
    m.publish(p, things[i]);
  }
  reader.join();
  CHECK_FALSE(wrong);
}
