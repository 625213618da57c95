// Which of the idle blocks of all streams is found.
#include "cache_scene.hpp"

#include <pagesift/backend/simulated.hpp>
#include <pagesift/front/idle_memory.hpp>

#include <doctest/doctest.h>

using pagesift::kibibyte;
using idle = pagesift::idle_memory<pagesift::simulated_backend>;

TEST_CASE("the block that was freed first is found over all caches of its stream") {
  pagesift::simulated_device device;
  pagesift::cache_registry caches;
  idle memory{pagesift::simulated_backend{device}, caches};
  auto& owner = memory.streams.of(5);
  auto& other = owner.cache_for(1, caches);
  for (const bool in_first : {true, false}) {
    CAPTURE(in_first);
    cut_blocks blocks{4 * kibibyte};
    const pagesift::epoch before = owner.timeline.current();
    (in_first ? owner.first_cache() : other).push(blocks[0], {5, before});
    owner.timeline.close(memory.streams.next_epoch());
    (in_first ? other : owner.first_cache()).push(blocks[1], {5, owner.timeline.current()});
    owner.timeline.complete_up_to(before, memory.events);
    CHECK(memory.complete_block(blocks.index()) == &blocks[0]);
    CHECK(memory.complete_block(blocks.index()) == nullptr);
    CHECK(memory.own_block(owner, blocks.index()) == &blocks[1]);
  }
}
