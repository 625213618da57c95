// What a thread remembers of a stream whose record is another stream's by now.
#include "world.hpp"

#include <cstdint>

using simulated = pagesift::simulated_backend;
using record = pagesift::stream_record<simulated>;

namespace {

constexpr std::size_t bytes = 4 * kibibyte;

/// The state of a pool with memory that is only numbers, and a thread that has found stream 5.
struct stale_scene {
  pagesift::simulated_device device;
  simulated_stream s = device.create_stream();
  pagesift::pool_state<simulated> state{simulated{device}, {}};
  const pagesift::request wanted = pagesift::make_request(bytes, pagesift::default_alignment);

  stale_scene() {
    auto& heap = state.memory.heap;
    constexpr std::uintptr_t base = 1000 * pagesift::page_bytes;
    heap.add(heap.prepare(8),
             reinterpret_cast<std::byte*>(base),  // NOLINT(performance-no-int-to-ptr)
             8 * pagesift::page_bytes);
  }

  /// A block in users' hands that stream `of` has.
  pagesift::block& handed_out(record& of) {
    pagesift::block& b = *state.memory.fresh_block(of, wanted, wanted.plenty);
    b.use = {of.id, of.timeline.current()};
    (void)pagesift::hand_out(state, of.first_cache(), b, {bytes, wanted.index});
    return b;
  }

  /// Gives the record of stream 5, which is swept, to stream 6.
  record& give_to_another(const record& former) {
    {
      pagesift::pool_lock lock{state.caches};
      lock.freeze();
      state.memory.streams.sweep([](const record&) { return true; });
    }
    record& heir = state.memory.streams.of(6);
    REQUIRE(&heir == &former);
    return heir;
  }
};

}  // namespace

TEST_CASE("a block freed on a stream whose record is another's is placed anew, not in its cache") {
  stale_scene scene;
  record& former = scene.state.memory.streams.of(5);
  pagesift::remembered_stream<simulated> known{scene.state.number,    scene.s, 5, &former,
                                               &former.first_cache(), 0};
  pagesift::block& b = scene.handed_out(former);
  const record& heir = scene.give_to_another(former);
  CHECK(pagesift::free_known(scene.state, known, b.address).claimed == &b);
  CHECK(heir.first_cache().of(b.run->waiting).empty());
}

TEST_CASE("a request on a stream whose record is another's takes from none of its caches") {
  for (const bool moved_apart : {false, true}) {
    CAPTURE(moved_apart);
    stale_scene scene;
    record& former = scene.state.memory.streams.of(5);
    pagesift::stream_cache& second = former.cache_for(1, scene.state.caches);
    pagesift::remembered_stream<simulated> known{
        scene.state.number, scene.s, 5, &former, moved_apart ? &second : &former.first_cache(), 0};
    record& heir = scene.give_to_another(former);
    for (pagesift::stream_cache* const cache : {&heir.first_cache(), &second}) {
      pagesift::block& b = scene.handed_out(heir);
      cache->push(b, {6, heir.timeline.current()});
    }
    CHECK(pagesift::hit(scene.state, known, {bytes, scene.wanted.index}) == nullptr);
  }
}
