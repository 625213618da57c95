// The map from an address to what stands there: one entry a page of 2 MiB, in a table of three
// levels.
#pragma once

#include <pagesift/core/bytes.hpp>
#include <pagesift/core/reserve.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace pagesift {

/// Unit of the page heap: the smallest piece of memory that CUDA's virtual memory calls map.
inline constexpr std::size_t page_bytes = 2 * mebibyte;

/// Maps pages to objects of type `T`, which it does not own. An entry may carry a tag: it is
/// *published*.
///
/// `at` and `published` may be called by any thread at any time, beside anything else; what was
/// written to the object before its entry was set is seen by whoever finds it there. All other
/// functions are for one thread at a time: the pool's lock guards them.
///
/// Tables are made when addresses are first seen and stay as long as the map: 32 KiB for each 8 GiB
/// of addresses.
template <typename T>
class address_map {
 public:
  /// Addresses are below two to this power, which holds for every system in use.
  static constexpr unsigned address_bits = 57;

  /// Pages of one table of the lowest level.
  static constexpr std::size_t table_pages = std::size_t{1} << 12;

  /// \throws std::bad_alloc
  address_map() : root_{make_table()} {}

  /// Promises that one later `cover` of `pages` pages, wherever they lie, has its tables.
  /// \throws std::bad_alloc; nothing is promised then
  void reserve(std::size_t pages) {
    const std::size_t needed = promised_ + most_tables(pages);
    while (spare_.size() < needed) {
      reserve_amortised(tables_, tables_.size() + 1);
      reserve_amortised(spare_, needed);
      tables_.push_back(make_table());
      spare_.push_back(tables_.back().get());
    }
    promised_ = needed;
  }

  /// Takes back a promise made for `pages` pages.
  void unreserve(std::size_t pages) noexcept { promised_ -= most_tables(pages); }

  /// Makes the tables for the pages from `base` on. Nothing fails: their number was promised.
  void cover(const void* base, std::size_t pages) noexcept {
    const std::size_t first = number_of(base);
    for (std::size_t page = first; page < first + pages; page = (page | index_mask) + 1) {
      table& middle = child_made(*root_, page >> (2 * level_bits));
      child_made(middle, (page >> level_bits) & index_mask);
    }
  }

  /// Makes the tables for the pages from `base` on. \throws std::bad_alloc; some may be made then
  void reserve_and_cover(const void* base, std::size_t pages) {
    reserve(pages);
    cover(base, pages);
    unreserve(pages);
  }

  /// The entry of the page in which `p` lies; null where there is none. Safe for any pointer.
  [[nodiscard]] T* at(const void* p) const noexcept { return object_of(word_at(p)); }

  /// The same, if the entry is published.
  [[nodiscard]] T* published(const void* p) const noexcept {
    const std::uintptr_t word = word_at(p);
    return (word & tag) != 0 ? object_of(word) : nullptr;
  }

  /// Sets the entry of the page in which `p` lies. Precondition: that page was covered.
  void set(const void* p, T* object) noexcept {
    store(p, reinterpret_cast<std::uintptr_t>(object));
  }

  /// Sets the entry and publishes it.
  void publish(const void* p, T& object) noexcept {
    static_assert(alignof(T) > 1, "the lowest bit of an entry is the tag");
    store(p, reinterpret_cast<std::uintptr_t>(&object) | tag);
  }

 private:
  static constexpr unsigned level_bits = floor_log2(table_pages);
  static constexpr unsigned page_bits = floor_log2(page_bytes);
  static constexpr std::size_t entries = table_pages;
  static constexpr std::size_t index_mask = entries - 1;
  static constexpr std::uintptr_t tag = 1;
  static_assert(3 * level_bits + page_bits == address_bits);

  struct table {
    std::array<std::atomic<std::uintptr_t>, entries> words;
  };

  [[nodiscard]] static std::unique_ptr<table> make_table() {
    auto made = std::make_unique<table>();
    for (auto& word : made->words) {
      word.store(0, std::memory_order_relaxed);
    }
    return made;
  }

  /// Tables that `pages` pages need at most: they may begin anywhere.
  [[nodiscard]] static constexpr std::size_t most_tables(std::size_t pages) noexcept {
    return (pages / entries + 2) + (pages / entries / entries + 2);
  }

  [[nodiscard]] static std::size_t number_of(const void* p) noexcept {
    return reinterpret_cast<std::uintptr_t>(p) / page_bytes;
  }

  [[nodiscard]] static table* child(const table& parent, std::size_t index) noexcept {
    return reinterpret_cast<table*>(parent.words[index].load(std::memory_order_acquire));
  }

  table& child_made(table& parent, std::size_t index) noexcept {
    table* found = child(parent, index);
    if (found == nullptr) {
      found = spare_.back();
      spare_.pop_back();
      parent.words[index].store(reinterpret_cast<std::uintptr_t>(found), std::memory_order_release);
    }
    return *found;
  }

  [[nodiscard]] std::uintptr_t word_at(const void* p) const noexcept {
    const std::size_t page = number_of(p);
    const std::size_t top = page >> (2 * level_bits);
    const table* middle = top < entries ? child(*root_, top) : nullptr;
    const table* leaf =
        middle == nullptr ? nullptr : child(*middle, (page >> level_bits) & index_mask);
    return leaf == nullptr ? 0 : leaf->words[page & index_mask].load(std::memory_order_acquire);
  }

  void store(const void* p, std::uintptr_t word) noexcept {
    const std::size_t page = number_of(p);
    table& middle = *child(*root_, page >> (2 * level_bits));
    table& leaf = *child(middle, (page >> level_bits) & index_mask);
    leaf.words[page & index_mask].store(word, std::memory_order_release);
  }

  [[nodiscard]] static T* object_of(std::uintptr_t word) noexcept {
    return reinterpret_cast<T*>(word & ~tag);
  }

  std::unique_ptr<table> root_;
  std::vector<std::unique_ptr<table>> tables_;  // all but the root
  std::vector<table*> spare_;                   // those not in use yet
  std::size_t promised_ = 0;
};

}  // namespace pagesift
