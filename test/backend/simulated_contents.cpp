// What the memory of the simulated device holds, and who may look at it when.
#include <pagesift/backend/simulated.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>

namespace {

using bytes = std::array<unsigned char, 6>;
constexpr std::size_t piece_bytes = 2 * pagesift::mebibyte;

struct scene {
  pagesift::simulated_device device;
  pagesift::simulated_backend backend{device};
  pagesift::simulated_stream s = device.create_stream();
  unsigned char* p = acquire();

  unsigned char* acquire() {
    void* memory = nullptr;
    REQUIRE(backend.acquire(piece_bytes, memory).ok());
    return static_cast<unsigned char*>(memory);
  }

  bytes read() {
    bytes copy{};
    REQUIRE(backend.copy_to_host(copy.data(), p, copy.size(), s).ok());
    return copy;
  }
};

}  // namespace

TEST_CASE("bytes that nobody has written are 0, and later writes are seen over earlier ones") {
  scene t;
  CHECK(t.read() == bytes{0, 0, 0, 0, 0, 0});
  REQUIRE(t.backend.fill(t.p, 5, 5, t.s).ok());
  t.device.scribble(t.p + 1, 2, 7);
  CHECK(t.read() == bytes{5, 7, 7, 5, 5, 0});
  t.device.scribble(t.p + 2, 4, 8);
  CHECK(t.read() == bytes{5, 7, 8, 8, 8, 8});
  CHECK(t.device.violations().empty());
}

TEST_CASE("memory that was released and acquired again holds nothing of what it held") {
  scene t;
  t.device.scribble(t.p, 6, 9);
  REQUIRE(t.backend.release(t.p, piece_bytes).ok());
  REQUIRE(t.acquire() == t.p);
  CHECK(t.read() == bytes{0, 0, 0, 0, 0, 0});
}

TEST_CASE("memory that was unmapped holds nothing of what it held") {
  scene t;
  void* addresses = nullptr;
  pagesift::simulated_physical piece;
  REQUIRE(t.backend.reserve(piece_bytes, addresses).ok());
  REQUIRE(t.backend.create(piece_bytes, {}, piece).ok());
  REQUIRE(t.backend.map(addresses, piece_bytes, piece, {}).ok());
  t.p = static_cast<unsigned char*>(addresses);
  t.device.scribble(t.p, 6, 9);
  REQUIRE(t.backend.unmap(addresses, piece_bytes).ok());
  REQUIRE(t.backend.map(addresses, piece_bytes, piece, {}).ok());
  CHECK(t.read() == bytes{0, 0, 0, 0, 0, 0});
}

TEST_CASE("a look at bytes that other work has, or that are not there, is a violation") {
  scene t;
  const auto other = t.device.create_stream();
  t.device.use(other, t.p, 6);
  (void)t.read();
  CHECK(t.device.violations().size() == 1);
  CHECK(t.backend.fill(t.p + piece_bytes, 1, 6, t.s).ok());
  CHECK(t.device.violations().size() == 2);
}

TEST_CASE("a look on a capturing stream fails and leaves the capture valid") {
  scene t;
  unsigned char byte = 0;
  t.device.begin_capture(t.s);
  CHECK(t.backend.fill(t.p, 1, 6, t.s).failed());
  CHECK(t.backend.copy_to_host(&byte, t.p, 1, t.s).failed());
  CHECK(t.device.end_capture(t.s));
}
