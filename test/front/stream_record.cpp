// A stream's record: its caches, and starting anew for another stream.
#include "cache_scene.hpp"

#include <pagesift/backend/simulated.hpp>
#include <pagesift/front/stream_record.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

using pagesift::cache_registry;
using pagesift::mebibyte;
using pagesift::stream_cache;
using pagesift::unordered_stream;
using record = pagesift::stream_record<pagesift::simulated_backend>;

namespace {

std::vector<stream_cache*> caches_of(const record& r) {
  std::vector<stream_cache*> caches;
  r.for_each_cache([&caches](stream_cache& cache) { caches.push_back(&cache); });
  return caches;
}

}  // namespace

TEST_CASE("threads get caches of their own by their numbers, sixteen at most, each of the stream") {
  cache_registry all;
  record r{7, 1, all.make(true)};
  CHECK(caches_of(r) == std::vector<stream_cache*>{&r.first_cache()});
  stream_cache& mine = r.cache_for(3, all);
  CHECK(&mine != &r.first_cache());
  CHECK(&r.cache_for(3, all) == &mine);
  CHECK(&r.cache_for(3 + record::max_caches, all) == &mine);
  CHECK(&r.cache_for(record::max_caches, all) == &r.first_cache());
  for (unsigned thread = 0; thread < 40; ++thread) {
    (void)r.cache_for(thread, all);
  }
  CHECK(caches_of(r).size() == record::max_caches);
  cut_blocks blocks{4096};
  for (stream_cache* cache : caches_of(r)) {
    CHECK(cache->stream == 7);
    cache->push(blocks[0], {7, 1});
    CHECK(&r.cache_of(blocks[0]) == cache);
    cache->erase(blocks[0]);
  }
}

TEST_CASE("a record belongs to nobody once retired, and to its new stream in every cache") {
  cache_registry all;
  record r{7, 1, all.make(true)};
  r.cache_for(3, all).sealed_unasked();
  r.retire();
  CHECK(r.id == unordered_stream);
  for (const stream_cache* cache : caches_of(r)) {
    CHECK(cache->stream == unordered_stream);
  }
  r.restart(8, 5);
  CHECK(r.id == 8);
  CHECK(r.timeline.current() == 5);
  CHECK_FALSE(r.timeline.is_complete(5));
  CHECK(r.timeline.is_complete(4));
  for (stream_cache* cache : caches_of(r)) {
    CHECK(cache->stream == 8);
    CHECK(cache->seal_is_due(5, 2, 1));
  }
}
