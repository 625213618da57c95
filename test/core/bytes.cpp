#include <pagesift/core/bytes.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace {

constexpr std::size_t largest = std::numeric_limits<std::size_t>::max();

TEST_CASE("a power of two has one bit, and 0 is not one") {
  CHECK_FALSE(pagesift::is_power_of_two(0));
  CHECK(pagesift::is_power_of_two(1));
  for (unsigned log = 1; log < 64; ++log) {
    const std::size_t power = std::size_t{1} << log;
    CHECK(pagesift::is_power_of_two(power));
    CHECK_FALSE(pagesift::is_power_of_two(power + 1));
  }
  CHECK_FALSE(pagesift::is_power_of_two(largest));
}

TEST_CASE("floor_log2 gives the highest set bit of every width") {
  for (unsigned log = 0; log < 64; ++log) {
    const std::size_t power = std::size_t{1} << log;
    CHECK(pagesift::floor_log2(power) == log);
    CHECK(pagesift::floor_log2(power + (power - 1)) == log);
  }
}

TEST_CASE("a division is rounded up without wrapping") {
  CHECK(pagesift::divide_round_up(0, 7) == 0);
  CHECK(pagesift::divide_round_up(1, 7) == 1);
  CHECK(pagesift::divide_round_up(7, 7) == 1);
  CHECK(pagesift::divide_round_up(8, 7) == 2);
  CHECK(pagesift::divide_round_up(largest, 1) == largest);
  CHECK(pagesift::divide_round_up(largest, 2) == (largest / 2) + 1);
  CHECK(pagesift::divide_round_up(largest, largest) == 1);
}

TEST_CASE("align_up gives the next multiple, up to the last one that exists") {
  CHECK(pagesift::align_up(0, 256) == 0);
  CHECK(pagesift::align_up(1, 256) == 256);
  CHECK(pagesift::align_up(256, 256) == 256);
  CHECK(pagesift::align_up(257, 256) == 512);
  CHECK(pagesift::align_up(largest, 1) == largest);
  CHECK(pagesift::align_up(largest - 255, 256) == largest - 255);
}

TEST_CASE("align_up refuses a multiple that would wrap") {
  CHECK_THROWS_AS((void)pagesift::align_up(largest, 2), pagesift::size_overflow);
  CHECK_THROWS_AS((void)pagesift::align_up(largest - 254, 256), pagesift::size_overflow);
  CHECK_THROWS_AS((void)pagesift::align_up((std::size_t{1} << 63) + 1, std::size_t{1} << 63),
                  pagesift::size_overflow);
}

TEST_CASE("the bytes of an array are count times element size") {
  CHECK(pagesift::array_bytes(0, 8) == 0);
  CHECK(pagesift::array_bytes(8, 0) == 0);
  CHECK(pagesift::array_bytes(largest, 0) == 0);
  CHECK(pagesift::array_bytes(100'000'001, sizeof(double)) == 800'000'008);
  CHECK(pagesift::array_bytes(largest, 1) == largest);
  CHECK(pagesift::array_bytes(largest / 8, 8) == largest - 7);
}

TEST_CASE("an array whose bytes would wrap is refused, with both numbers in the message") {
  const std::size_t count = (largest / 8) + 1;
  CHECK_THROWS_AS((void)pagesift::array_bytes(largest, 2), pagesift::size_overflow);
  CHECK_THROWS_AS((void)pagesift::array_bytes(2, largest), pagesift::size_overflow);
  CHECK_THROWS_AS((void)pagesift::array_bytes(std::size_t{1} << 32, std::size_t{1} << 32),
                  pagesift::size_overflow);
  CHECK_THROWS_WITH((void)pagesift::array_bytes(count, 8),
                    "pagesift: a request of 2305843009213693952 elements of 8 bytes does not fit "
                    "the address space");
}

TEST_CASE("a negative count is refused, with the count in the message") {
  CHECK(pagesift::checked_count(0) == 0);
  CHECK(pagesift::checked_count(PTRDIFF_MAX) == largest / 2);
  CHECK_THROWS_AS((void)pagesift::checked_count(PTRDIFF_MIN), pagesift::invalid_argument);
  CHECK_THROWS_WITH((void)pagesift::checked_count(-1),
                    "pagesift: a count of elements cannot be negative, got -1");
}

}  // namespace
