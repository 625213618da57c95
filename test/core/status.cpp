#include <pagesift/core/status.hpp>

#include <doctest/doctest.h>

#include <initializer_list>

namespace {

using pagesift::outcome;
using pagesift::status;

TEST_CASE("a status is exactly one of ok, shortage, not ready and failed") {
  for (const outcome result :
       {outcome::ok, outcome::shortage, outcome::not_ready, outcome::failed}) {
    const status s{result, 2, "call"};
    CHECK(s.ok() == (result == outcome::ok));
    CHECK(s.shortage() == (result == outcome::shortage));
    CHECK(s.not_ready() == (result == outcome::not_ready));
    CHECK(s.failed() == (result == outcome::failed));
  }
}

TEST_CASE("a status that nothing was said about is ok") { CHECK(status{}.ok()); }

}  // namespace
