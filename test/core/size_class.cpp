#include <pagesift/core/size_class.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <random>
#include <vector>

namespace {

using pagesift::block_bytes;
using pagesift::class_count;
using pagesift::class_of;

constexpr std::size_t largest_size = std::numeric_limits<std::size_t>::max();

static_assert(class_of(2049) == 8, "the class is known at compile time");
static_assert(block_bytes(class_of(pagesift::max_block_bytes)) == pagesift::max_block_bytes);

// What must hold of every size, told apart from the formula that computes it.
void check_rules(std::size_t bytes) {
  CAPTURE(bytes);
  const pagesift::class_index index = class_of(bytes);
  const std::size_t block = block_bytes(index);
  REQUIRE(index < class_count);
  REQUIRE(block >= bytes);
  REQUIRE(block % pagesift::default_alignment == 0);
  REQUIRE(class_of(block) == index);
  if (bytes != 0) {
    REQUIRE(block - bytes <= std::max<std::size_t>(bytes / 8, 255));
    REQUIRE(class_of(bytes - 1) <= index);
  }
  REQUIRE((index == 0 || block_bytes(index - 1) < bytes));  // no smaller block would do
}

std::vector<std::size_t> sizes_near_powers_of_two() {
  std::vector<std::size_t> sizes;
  for (unsigned log = 0; log <= 62; ++log) {
    const std::size_t power = std::size_t{1} << log;
    for (std::size_t eighth = 0; eighth < 8; ++eighth) {
      const std::size_t step = power + eighth * (power / 8);
      for (const std::size_t size : {step - 1, step, step + 1}) {
        if (size <= pagesift::max_block_bytes) {
          sizes.push_back(size);
        }
      }
    }
  }
  return sizes;
}

TEST_CASE("every size up to 64 KiB keeps the rules of size classes") {
  for (std::size_t bytes = 0; bytes <= 64 * pagesift::kibibyte; ++bytes) {
    check_rules(bytes);
  }
}

TEST_CASE("sizes near every power of two and every eighth between keep the rules") {
  for (const std::size_t bytes : sizes_near_powers_of_two()) {
    check_rules(bytes);
  }
}

TEST_CASE("random sizes of every magnitude keep the rules") {
  std::mt19937_64 random{20240229};
  for (int i = 0; i < 100'000; ++i) {
    check_rules(random() >> (2 + random() % 62));
  }
}

TEST_CASE("block sizes grow from class to class and each is its own class") {
  for (pagesift::class_index index = 0; index < class_count; ++index) {
    CHECK(class_of(block_bytes(index)) == index);
    CHECK((index == 0 || block_bytes(index - 1) < block_bytes(index)));
  }
}

TEST_CASE("classes are 256 bytes apart up to 2 KiB, and eight per power of two above") {
  CHECK(block_bytes(0) == 256);
  CHECK(block_bytes(7) == 2048);
  CHECK(block_bytes(8) == 2048 + 256);
  CHECK(block_bytes(15) == 4096);
  CHECK(block_bytes(16) == 4096 + 512);
  CHECK(block_bytes(class_count - 1) == pagesift::max_block_bytes);
  CHECK(class_count == 8 + 8 * (62 - 11));
}

TEST_CASE("a request of 0 bytes gets the smallest block") {
  CHECK(class_of(0) == 0);
  CHECK(block_bytes(class_of(0, 4096)) == 4096);
}

TEST_CASE("sizes above the largest block are refused, with the size in the message") {
  for (const std::size_t bytes :
       {pagesift::max_block_bytes + 1, (std::size_t{1} << 63) - 1, std::size_t{1} << 63,
        (std::size_t{1} << 63) + 1, largest_size - 255, largest_size - 1, largest_size}) {
    CAPTURE(bytes);
    CHECK_THROWS_AS((void)class_of(bytes), pagesift::size_overflow);
    CHECK_THROWS_AS((void)class_of(bytes, pagesift::max_alignment), pagesift::size_overflow);
  }
  CHECK_THROWS_WITH(
      (void)class_of(largest_size),
      "pagesift: a request of 18446744073709551615 bytes does not fit the address space");
}

TEST_CASE("alignments that are no power of two up to 2 MiB are refused") {
  for (const std::size_t alignment :
       {std::size_t{0}, std::size_t{3}, std::size_t{255}, std::size_t{257},
        pagesift::max_alignment * 2, largest_size}) {
    CAPTURE(alignment);
    CHECK_THROWS_AS((void)class_of(1, alignment), pagesift::invalid_alignment);
  }
  CHECK_THROWS_WITH((void)class_of(1, 3),
                    "pagesift: an alignment must be a power of two from 1 to 2097152 bytes, got 3");
}

TEST_CASE("an alignment up to 256 changes no class") {
  for (std::size_t alignment = 1; alignment <= 256; alignment *= 2) {
    for (const std::size_t bytes : {0U, 1U, 256U, 257U, 5000U, 1'000'000U}) {
      CHECK(class_of(bytes, alignment) == class_of(bytes));
    }
  }
}

TEST_CASE("the block of an aligned request is large enough and a multiple of the alignment") {
  for (std::size_t alignment = 1; alignment <= pagesift::max_alignment; alignment *= 2) {
    for (const std::size_t bytes : sizes_near_powers_of_two()) {
      if (bytes > pagesift::max_block_bytes - alignment) {
        continue;
      }
      CAPTURE(bytes);
      CAPTURE(alignment);
      const std::size_t block = block_bytes(class_of(bytes, alignment));
      REQUIRE(block >= bytes);
      REQUIRE(block % alignment == 0);
    }
  }
}

}  // namespace
