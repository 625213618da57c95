// Giving memory back by the number of the device.
#include <pagesift/adapters/shortage.hpp>

#include <doctest/doctest.h>

#include <cstddef>

TEST_CASE("a callback for a device is asked for its memory, and for no other's") {
  pagesift::device_pool::default_pool().trim();  // it would give first
  std::size_t asked = 0;
  const auto registered = pagesift::on_shortage_of(0, [&](std::size_t bytes) {
    asked += bytes;
    return bytes;
  });
  CHECK(pagesift::ask_for_memory(0, 5) == 5);
  CHECK(pagesift::ask_for_memory(pagesift::memory_place{"elsewhere", 0}, 5) == 0);
  CHECK(asked == 5);
}

TEST_CASE("the place of a device is that of its pools") {
  CHECK(pagesift::memory_of(0) == pagesift::device_pool::default_pool().backend().place());
}
