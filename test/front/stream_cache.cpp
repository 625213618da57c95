// One cache: the order of its blocks, what it counts, and when it wants a seal.
#include "cache_scene.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

using pagesift::block_state;
using pagesift::epoch;
using pagesift::last_use;
using pagesift::mebibyte;
using pagesift::stream_cache;

TEST_CASE("the block freed last is handed out first") {
  cut_blocks blocks{4096};
  stream_cache cache;
  CHECK_FALSE(cache.may_have(blocks.index()));
  CHECK(cache.pop(blocks.index()) == nullptr);
  cache.push(blocks[0], {7, 1});
  cache.push(blocks[1], {7, 1});
  CHECK(cache.may_have(blocks.index()));
  CHECK(blocks[1].is(block_state::idle));
  CHECK(cache.pop(blocks.index()) == &blocks[1]);
  CHECK(cache.pop(blocks.index()) == &blocks[0]);
  CHECK_FALSE(cache.may_have(blocks.index()));
}

TEST_CASE("a block says in which of its stream's caches it waits, and since when") {
  cut_blocks blocks{4096};
  stream_cache cache;
  cache.number = 5;
  cache.push(blocks[0], {7, 42});
  CHECK(blocks[0].cache == 5);
  CHECK(blocks[0].use.stream == 7);
  CHECK(blocks[0].use.freed == 42);
}

TEST_CASE("a block that is put back is again the oldest") {
  cut_blocks blocks{4096};
  stream_cache cache;
  for (std::size_t i = 0; i < 3; ++i) {
    cache.push(blocks[i], {7, 1});
  }
  cache.erase(blocks[0]);
  blocks[0].set(block_state::taken);
  cache.put_back(blocks[0]);
  CHECK(blocks[0].is(block_state::idle));
  CHECK(cache.of(blocks.index()).oldest() == &blocks[0]);
  CHECK(cache.of(blocks.index()).newest() == &blocks[2]);
}

TEST_CASE("a block that waited elsewhere lies below those that were freed later") {
  cut_blocks blocks{4096};
  stream_cache cache;
  cache.push(blocks[0], {7, 2});
  cache.push(blocks[1], {7, 4});
  cache.push(blocks[2], {7, 4});
  cache.push_late(blocks[3], {7, 3});
  cache.push_late(blocks[4], {7, 1});
  cache.push_late(blocks[5], {7, 4});
  cache.push_late(blocks[6], {7, 5});
  CHECK(cache.unsealed_bytes(5) == 4096);
  for (const std::size_t newest : {6U, 5U, 2U, 1U, 3U, 0U, 4U}) {
    const pagesift::block* const b = cache.pop(blocks.index());
    CHECK(b == &blocks[newest]);
    CHECK(b->is(block_state::idle));
    CHECK(b->use.stream == 7);
  }
  CHECK(cache.pop(blocks.index()) == nullptr);
  CHECK(cache.unsealed_bytes(5) == 0);
}

TEST_CASE("blocks that are put back in any order are as old as before") {
  cut_blocks blocks{4096};
  stream_cache cache;
  cache.push(blocks[0], {7, 1});
  cache.push(blocks[1], {7, 2});
  cache.erase(blocks[0]);
  cache.erase(blocks[1]);
  cache.put_back(blocks[0]);
  cache.put_back(blocks[1]);
  CHECK(cache.of(blocks.index()).newest() == &blocks[1]);
  CHECK(cache.of(blocks.index()).oldest() == &blocks[0]);
}

TEST_CASE("blocks that move to another cache keep the order of their frees") {
  cut_blocks blocks{4096};
  stream_cache from;
  stream_cache to;
  to.number = 3;
  from.push(blocks[0], {7, 1});
  from.push(blocks[1], {7, 2});
  from.move_to(to, last_use{});
  CHECK_FALSE(from.may_have(blocks.index()));
  CHECK(to.of(blocks.index()).oldest() == &blocks[0]);
  CHECK(to.of(blocks.index()).newest() == &blocks[1]);
  CHECK(blocks[0].use.quiet());
  CHECK(blocks[0].cache == 3);
}

TEST_CASE("bytes that no event covers are those that wait since the current epoch began") {
  cut_blocks blocks{mebibyte};
  stream_cache cache;
  cache.push(blocks[0], {7, 1});
  cache.push(blocks[1], {7, 1});
  CHECK(cache.unsealed_bytes(1) == 2 * mebibyte);
  CHECK(cache.unsealed_bytes(2) == 0);
  cache.push(blocks[2], {7, 2});
  CHECK(cache.unsealed_bytes(2) == mebibyte);
  cache.erase(blocks[0]);  // of an epoch that is over
  CHECK(cache.unsealed_bytes(2) == mebibyte);
  CHECK(cache.pop(blocks.index()) == &blocks[2]);
  CHECK(cache.unsealed_bytes(2) == 0);
}

TEST_CASE("the memo of the block handed out last knows its address, and forgets when counts do") {
  cut_blocks blocks{4096};
  stream_cache cache;
  cache.handed_out(blocks[2], blocks.index());
  CHECK(cache.last_handed_out(blocks[2].address) == &blocks[2]);
  CHECK(cache.last_handed_out(blocks[2].address + 1) == nullptr);
  cache.handed_out(blocks[3], blocks.index());
  CHECK(cache.last_handed_out(blocks[2].address) == nullptr);
  cache.settle();  // the runs may be given back now
  CHECK(cache.last_handed_out(blocks[3].address) == nullptr);
}

TEST_CASE("a cache knows what moved since it settled, and the most that had") {
  cut_blocks blocks{4096};
  stream_cache cache;
  cache.handed_out(blocks[0], blocks.index());
  cache.handed_out(blocks[1], blocks.index());
  cache.taken_back(blocks[0]);
  CHECK(cache.moved_bytes() == 4096);
  CHECK(cache.most_moved_bytes() == 8192);
  cache.settle();
  cache.taken_back(blocks[1]);
  CHECK(cache.moved_bytes() == -4096);
  CHECK(cache.most_moved_bytes() == 0);
  CHECK(cache.traffic(blocks.index()).handed_out == 2);
  CHECK(cache.traffic(blocks.index()).taken_back == 2);
  CHECK(cache.traffic(blocks.index()).in_use_bytes == 0);
}

TEST_CASE("a seal is due at the free that brings what waits to the threshold") {
  cut_blocks blocks{mebibyte};
  stream_cache cache;
  CHECK_FALSE(cache.seal_is_due(1, mebibyte, 2 * mebibyte));
  CHECK(cache.seal_is_due(1, 2 * mebibyte, 2 * mebibyte));
  cache.push(blocks[0], {7, 1});
  CHECK(cache.seal_is_due(1, mebibyte, 2 * mebibyte));
  CHECK_FALSE(cache.seal_is_due(2, mebibyte, 2 * mebibyte));  // the first of its epoch
}

TEST_CASE("seals that nobody asked for become rare, up to a bound, until somebody asks") {
  stream_cache cache;
  const auto frees_until_due = [&cache] {
    std::uint32_t frees = 0;
    while (!cache.seal_is_due(1, 2, 1)) {
      ++frees;
    }
    return frees;
  };
  std::uint32_t expected = 0;
  for (int i = 0; i < 20; ++i) {
    REQUIRE(frees_until_due() == expected);
    cache.sealed_unasked();
    expected = std::min<std::uint32_t>(2 * expected + 1, 1U << 16U);
  }
  CHECK(expected == 1U << 16U);
  cache.sealed_on_request();
  CHECK(frees_until_due() == 0);
  cache.sealed_unasked();
  CHECK(frees_until_due() == 1);
  CHECK_FALSE(cache.seal_is_due(1, 0, 1));
}

TEST_CASE("a cache that serves another stream has forgotten how rarely the last one sealed") {
  stream_cache cache;
  cache.sealed_unasked();
  cache.sealed_unasked();
  CHECK_FALSE(cache.seal_is_due(1, 2, 1));
  cache.restart(9);
  CHECK(cache.stream == 9);
  CHECK(cache.seal_is_due(1, 2, 1));
}
