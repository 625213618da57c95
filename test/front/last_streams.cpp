// What a thread remembers of streams.
#include <pagesift/backend/simulated.hpp>
#include <pagesift/front/last_streams.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <thread>

using pagesift::next_pool_number;
using pagesift::simulated_stream;
using pagesift::stream_id;
using streams = pagesift::last_streams<pagesift::simulated_backend>;

namespace {

streams::entry& remember(std::uint64_t pool, std::uint64_t handle, stream_id id) {
  return streams::remember({pool, simulated_stream{handle}, id, nullptr, nullptr, 0});
}

}  // namespace

TEST_CASE("a thread remembers four streams; a fifth takes the place of the oldest") {
  const std::uint64_t pool = next_pool_number();
  for (std::uint64_t handle = 1; handle <= 4; ++handle) {
    CHECK(remember(pool, handle, 10 + handle).id == 10 + handle);
  }
  for (std::uint64_t handle = 1; handle <= 4; ++handle) {
    REQUIRE(streams::find(pool, simulated_stream{handle}) != nullptr);
    CHECK(streams::find(pool, simulated_stream{handle})->id == 10 + handle);
  }
  remember(pool, 5, 15);
  CHECK(streams::find(pool, simulated_stream{1}) == nullptr);
  CHECK(streams::find(pool, simulated_stream{2}) != nullptr);
  CHECK(streams::find(pool, simulated_stream{5})->id == 15);
}

TEST_CASE("a stream with a handle that is known replaces the former one, and no other") {
  const std::uint64_t pool = next_pool_number();
  for (std::uint64_t handle = 1; handle <= 4; ++handle) {
    remember(pool, handle, handle);
  }
  remember(pool, 1, 100);
  CHECK(streams::find(pool, simulated_stream{1})->id == 100);
  for (std::uint64_t handle = 2; handle <= 4; ++handle) {
    CHECK(streams::find(pool, simulated_stream{handle})->id == handle);
  }
}

TEST_CASE("what is remembered of one pool is not known of another, nor to another thread") {
  const std::uint64_t pool = next_pool_number();
  const std::uint64_t other = next_pool_number();
  CHECK(pool != other);
  remember(pool, 1, 10);
  CHECK(streams::find(other, simulated_stream{1}) == nullptr);
  remember(other, 1, 20);
  CHECK(streams::find(pool, simulated_stream{1})->id == 10);
  std::thread{[&] { CHECK(streams::find(pool, simulated_stream{1}) == nullptr); }}.join();
}

TEST_CASE("threads have numbers of their own, which stay") {
  const unsigned mine = pagesift::this_thread_number();
  unsigned others = mine;
  std::thread{[&] { others = pagesift::this_thread_number(); }}.join();
  CHECK(others != mine);
  CHECK(pagesift::this_thread_number() == mine);
}
