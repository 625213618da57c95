// What every backend must do whose memory the host can fill and read. A backend's file names its
// fixture (see conformance.hpp):
//
//   PAGESIFT_CONTENTS_CONFORMANCE(fixture)
#pragma once

#include "conformance.hpp"

#include <pagesift/backend/memory_contents.hpp>

#include <cstddef>
#include <vector>

namespace conformance {

template <typename Backend>
std::vector<unsigned char> contents_of(Backend& backend, const void* p, std::size_t bytes,
                                       typename Backend::stream_type stream) {
  std::vector<unsigned char> copy(bytes, 0xEE);
  REQUIRE(backend.copy_to_host(copy.data(), p, bytes, stream).ok());
  return copy;
}

TEST_CASE_TEMPLATE_DEFINE("what was filled on a stream is read there, and nothing beside it",
                          Fixture, filled_bytes_are_read) {
  Fixture fixture;
  auto& backend = fixture.backend();
  const piece got = acquired(backend, 2 * mebibyte);
  const auto stream = fixture.make_stream();
  auto* const p = static_cast<unsigned char*>(got.p);
  REQUIRE(backend.fill(p, 1, 3000, stream).ok());
  REQUIRE(backend.fill(p + 1001, 0xF7, 999, stream).ok());
  const auto copy = contents_of(backend, p, 3000, stream);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < copy.size(); ++i) {
    wrong += copy[i] != (i >= 1001 && i < 2000 ? 0xF7 : 1) ? 1 : 0;
  }
  CHECK(wrong == 0);
  CHECK(contents_of(backend, p + 1000, 2, stream) == std::vector<unsigned char>{1, 0xF7});
  CHECK(backend.fence().ok());
  CHECK(backend.release(got.p, got.bytes).ok());
  fixture.drop_stream(stream);
}

}  // namespace conformance

#define PAGESIFT_CONTENTS_CONFORMANCE(Fixture)               \
  namespace conformance {                                    \
  TEST_CASE_TEMPLATE_INVOKE(filled_bytes_are_read, Fixture); \
  }                                                          \
  static_assert(pagesift::has_contents_v<Fixture::backend_type>)
