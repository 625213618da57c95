// Sizes and alignments at the edges, by every way of asking for memory: in checked and announced
// pools, which ask the pool for more than the user did, through bound streams, without a stream, in
// a capture.
#include "capture_scene.hpp"

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t largest = std::numeric_limits<std::size_t>::max();

using ask_function = std::function<void*(simulated_pool&, std::size_t, std::size_t)>;
using free_function = std::function<void(simulated_pool&, void*, std::size_t)>;

/// A pool on a device of its own, and one way of asking it for memory.
struct way {
  explicit way(const pool_options& options) : w{options, relaxed()} {}
  way(const way&) = delete;
  way& operator=(const way&) = delete;

  void* ask(std::size_t bytes, std::size_t alignment = 256) const {
    return ask_pool(*w.pool, bytes, alignment);
  }
  void free(void* p, std::size_t bytes) const { free_to_pool(*w.pool, p, bytes); }

  mutable world w;
  simulated_stream s = w.device.create_stream();
  ask_function ask_pool = [this](simulated_pool& pool, std::size_t bytes, std::size_t alignment) {
    return pool.allocate(bytes, alignment, s);
  };
  free_function free_to_pool = [this](simulated_pool& pool, void* p, std::size_t bytes) {
    pool.deallocate(p, bytes, s);
  };
};

pool_options with_checks(pagesift::checks checks) {
  pool_options options;
  options.checks = checks;
  return options;
}

/// Calls `look(way)` for every way.
template <typename Look>
void by_every_way(Look&& look) {
  for (const auto checks :
       {pagesift::checks::standard, pagesift::checks::trusted, pagesift::checks::full}) {
    for (const char* const name : {"stream", "bound", "no stream", "capture"}) {
      CAPTURE(static_cast<int>(checks));
      CAPTURE(name);
      way each{with_checks(checks)};
      const std::string which{name};
      const auto bound = each.w.pool->on(each.s);
      if (which == "bound") {
        each.ask_pool = [bound](simulated_pool&, std::size_t bytes, std::size_t alignment) {
          return bound.allocate(bytes, alignment);
        };
        each.free_to_pool = [bound](simulated_pool&, void* p, std::size_t bytes) {
          bound.deallocate(p, bytes);
        };
      } else if (which == "no stream") {
        each.ask_pool = [](simulated_pool& pool, std::size_t bytes, std::size_t alignment) {
          return pool.allocate_sync(bytes, alignment);
        };
        each.free_to_pool = [](simulated_pool& pool, void* p, std::size_t bytes) {
          pool.deallocate_sync(p, bytes);
        };
      } else if (which == "capture") {
        each.w.device.begin_capture(each.s);
      }
      look(each);
      CHECK((which != "capture" || each.w.device.end_capture(each.s)));
    }
  }
  pool_options announced;
  announced.announce = true;
  announced.backing = pagesift::backing::plain;
  look(way{announced});
}

void check_unchanged(const pool_stats& after, const pool_stats& before) {
  CHECK(after.held == before.held);
  CHECK(after.in_use == before.in_use);
  CHECK(after.peak_in_use == before.peak_in_use);
  CHECK(after.hits == before.hits);
  CHECK(after.misses == before.misses);
  CHECK(after.rejected_frees == before.rejected_frees);
}

}  // namespace

TEST_CASE("sizes that wrap or exceed all memory are refused by every way, and change nothing") {
  std::vector<std::size_t> sizes{(std::size_t{1} << 63) - 1, std::size_t{1} << 63,
                                 (std::size_t{1} << 63) + 1, (std::size_t{1} << 62) - 1,
                                 std::size_t{1} << 62,       (std::size_t{1} << 62) + 1};
  for (std::size_t k = 0; k <= 4096; k += k < 16 ? 1 : 255) {
    sizes.push_back(largest - k);
    sizes.push_back((std::size_t{1} << 62) - k);  // what is added for red zones must not wrap it
  }
  by_every_way([&](const way& each) {
    each.free(each.ask(5000), 5000);
    const pool_stats before = each.w.pool->stats();
    each.w.device.reset_calls();
    for (const std::size_t bytes : sizes) {
      CAPTURE(bytes);
      CHECK_THROWS_AS((void)each.ask(bytes), std::bad_alloc);
      CHECK_THROWS_AS((void)each.ask(bytes, 2 * mebibyte), std::bad_alloc);
    }
    CHECK(each.w.calls_with_effect() == 0);
    check_unchanged(each.w.pool->stats(), before);
  });
}

TEST_CASE("requests of no bytes get blocks of their own by every way, and give them back") {
  by_every_way([](const way& each) {
    std::vector<void*> blocks;
    for (int i = 0; i < 1000; ++i) {
      blocks.push_back(each.ask(0));
      each.free(nullptr, 0);
    }
    CHECK(std::set<void*>{blocks.begin(), blocks.end()}.size() == blocks.size());
    CHECK(blocks_in_use(each.w.pool->stats()) == blocks.size());
    for (void* const p : blocks) {
      each.free(p, 0);
    }
    const pool_stats after = each.w.pool->stats();
    CHECK(after.in_use == 0);
    CHECK(after.rejected_frees == 0);
    check_invariants(after);
  });
}

TEST_CASE("alignments up to 2 MiB are kept by every way, others refused, and change nothing") {
  by_every_way([](const way& each) {
    for (std::size_t alignment = 1; alignment <= 2 * mebibyte; alignment *= 2) {
      void* const p = each.ask(1000, alignment);
      CHECK(aligned(p, alignment));
      each.free(p, 1000);
    }
    const pool_stats before = each.w.pool->stats();
    for (const std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{257},
                                        4 * mebibyte, largest, largest / 2 + 1}) {
      CHECK_THROWS_AS((void)each.ask(64, alignment), pagesift::invalid_alignment);
    }
    check_unchanged(each.w.pool->stats(), before);
  });
}
