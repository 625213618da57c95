// The host is short of memory for the pool's own books: a free needs none and never throws, and a
// request says so as std::bad_alloc, not as a shortage of the device.
#include "capture_scene.hpp"
#include "host_limit.hpp"

#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace {

/// In its scope so many allocations of the calling thread succeed, then none, or all but one. The
/// simulated device's own always do.
class short_host {
 public:
  explicit short_host(world& w, std::uint64_t succeeding = 0, bool recovers = false) : w_{w} {
    w_.device.before_calls([](simulated_call) { this_threads_host_limit().suspended = true; });
    w_.device.after_calls([](simulated_call) { this_threads_host_limit().suspended = false; });
    this_threads_host_limit() = {true, false, succeeding, recovers, false};
  }
  ~short_host() {
    this_threads_host_limit().set = false;
    w_.device.before_calls({});
    w_.device.after_calls({});
  }
  short_host(const short_host&) = delete;
  short_host& operator=(const short_host&) = delete;

 private:
  world& w_;
};

/// What the test itself has the device do meanwhile is not concerned.
template <typename Act>
auto on_the_device(Act&& act) {
  this_threads_host_limit().suspended = true;
  auto result = act();
  this_threads_host_limit().suspended = false;
  return result;
}

constexpr std::size_t bytes = 20 * mebibyte;

/// A pool that knows two streams and holds memory of theirs; `p` is in use on the first.
struct scene {
  explicit scene(const pool_options& options) : w{options, relaxed(128 * mebibyte)} {
    w.turn(256, b);
    w.turn(10 * mebibyte, a);
    p = w.allocate(bytes, a);
  }

  /// Frees `p` on `s` while the host is short.
  void free_on(simulated_stream s) {
    w.device.hand_back(s, p, bytes);
    const short_host now{w};
    w.pool->deallocate(p, bytes, s);
  }

  world w;
  simulated_stream a = w.device.create_stream();
  simulated_stream b = w.device.create_stream();
  void* p = nullptr;
};

pool_options on(pagesift::backing memory, std::size_t seal_bytes = 32 * mebibyte) {
  pool_options options;
  options.backing = memory;
  options.seal_bytes = seal_bytes;
  return options;
}

/// Calls `act(scene)` on either kind of memory, with seals at each free and without; then nothing
/// is in use, and all of it serves again.
template <typename Act>
void with_each_pool(Act&& act) {
  for (const auto memory : {pagesift::backing::plain, pagesift::backing::virtual_memory}) {
    for (const std::size_t seal_bytes : {std::size_t{1}, 256 * mebibyte}) {
      scene t{on(memory, seal_bytes)};
      act(t);
      CHECK(t.w.pool->stats().in_use == 0);
      check_invariants(t.w.pool->stats());
      t.w.turn(126 * mebibyte, t.b);
    }
  }
}

}  // namespace

TEST_CASE("a free needs no memory of the host, on the block's own stream and on any other") {
  with_each_pool([](scene& t) { t.free_on(t.a); });
  with_each_pool([](scene& t) {
    t.w.device.order(t.a, t.b);
    t.free_on(t.b);
  });
  with_each_pool([](scene& t) {
    const simulated_stream unknown = t.w.device.create_stream();
    t.w.device.order(t.a, unknown);
    t.free_on(unknown);
  });
  with_each_pool([](scene& t) {
    t.w.device.hand_back(t.p, bytes);
    const short_host now{t.w};
    t.w.pool->deallocate_sync(t.p, bytes);
  });
}

TEST_CASE("a free of a block that another stream used too needs no memory of the host") {
  with_each_pool([](scene& t) {
    t.w.device.use(t.b, t.p, bytes);
    t.w.pool->record_use(t.p, bytes, t.b);
    t.free_on(t.a);
  });
}

TEST_CASE("a free in a pool that knows many streams needs no memory of the host") {
  with_each_pool([](scene& t) {
    for (int i = 0; i < 70; ++i) {
      t.w.turn(256, t.w.device.create_stream());
    }
    t.free_on(t.a);
  });
}

TEST_CASE("a free in a capture needs no memory of the host, and the capture stays valid") {
  with_each_pool([](scene& t) {
    t.w.device.begin_capture(t.b);
    void* const q = t.w.allocate(4096, t.b);
    t.w.device.hand_back(t.b, q, 4096);
    {
      const short_host now{t.w};
      t.w.pool->deallocate(q, 4096, t.b);
    }
    t.free_on(t.a);
    CHECK(t.w.device.end_capture(t.b));
  });
}

TEST_CASE("a block that is freed into a graph nobody has memory to watch is kept for good") {
  scene t{on(pagesift::backing::plain)};
  const simulated_stream captured = t.w.device.create_stream();
  t.w.device.begin_capture(captured);
  t.w.device.hand_back(t.p, bytes);
  {
    const short_host now{t.w};
    t.w.pool->deallocate(t.p, bytes, captured);
  }
  CHECK(t.w.device.end_capture(captured));
  CHECK(t.w.pool->stats().in_use == 0);
  CHECK(t.w.pool->stats().captured == bytes);
  t.w.leaves_memory_behind();
}

TEST_CASE("a free in a checked pool needs no memory of the host") {
  pool_options options;
  options.checks = pagesift::checks::full;
  options.on_misuse = [](const pagesift::misuse_report&) { FAIL_CHECK("no mistake was made"); };
  scene t{options};
  t.w.turn(256, t.a);  // call stacks take some at their first use
  t.free_on(t.a);
  CHECK(t.w.pool->stats().in_use == 0);
}

TEST_CASE("trim and the end of a batch or a pool throw nothing where the host is short of memory") {
  with_each_pool([](scene& t) {
    t.free_on(t.a);
    {
      const short_host now{t.w};
      t.w.pool->end_batch();
      t.w.pool->end_batch();
      t.w.pool->trim();
    }
    t.w.pool->trim();  // what could not be split then goes now
    CHECK(t.w.held_bytes() == 0);
  });
  scene t{on(pagesift::backing::virtual_memory)};
  t.free_on(t.a);
  t.w.leaves_memory_behind();  // as far as it could not be split
  const short_host now{t.w};
  t.w.pool.reset();
}

namespace {

using operation = std::function<void(scene&)>;

void request(scene& t, std::size_t size, simulated_stream s) {
  t.w.pool->deallocate(t.w.pool->allocate(size, s), size, s);
}

simulated_stream new_stream(scene& t) {
  return on_the_device([&] { return t.w.device.create_stream(); });
}

void request_in_capture(scene& t) {
  on_the_device([&] {
    t.w.device.begin_capture(t.b);
    return true;
  });
  const auto end = [&] { return on_the_device([&] { return t.w.device.end_capture(t.b); }); };
  try {
    request(t, 40 * mebibyte, t.b);
  } catch (...) {
    (void)end();
    throw;
  }
  (void)end();
}

/// What may need memory of the host.
std::vector<std::pair<std::string, operation>> operations() {
  return {
      {"new memory", [](scene& t) { request(t, 60 * mebibyte, t.b); }},
      {"a slab", [](scene& t) { request(t, 5000, t.b); }},
      {"the rest of the device", [](scene& t) { request(t, 90 * mebibyte, t.b); }},
      {"a stream that is not known", [](scene& t) { request(t, 4096, new_stream(t)); }},
      {"a bound stream", [](scene& t) { (void)t.w.pool->on(new_stream(t)); }},
      {"no stream",
       [](scene& t) { t.w.pool->deallocate_sync(t.w.pool->allocate_sync(5000), 5000); }},
      {"another use", [](scene& t) { t.w.pool->record_use(t.p, bytes, t.b); }},
      {"retire", [](scene& t) { t.w.pool->retire(t.a); }},
      {"statistics", [](scene& t) { (void)t.w.pool->stats(); }},
      {"a capture", request_in_capture},
  };
}

/// Has an operation done with its allocation number `n` failing, on the host. Whether one did.
bool survives(const operation& act, pagesift::backing memory, std::uint64_t n, bool recovers) {
  scene t{on(memory, 1)};
  bool as_such = true;
  {
    const short_host now{t.w, n, recovers};
    try {
      act(t);
    } catch (const pagesift::out_of_memory&) {
      as_such = false;
    } catch (const std::bad_alloc&) {
    }
  }
  const bool refused = this_threads_host_limit().refused;
  CHECK(as_such);
  check_invariants(t.w.pool->stats());
  CHECK(blocks_in_use(t.w.pool->stats()) == 1);
  CHECK(t.w.pool->stats().live_events == t.w.device.live_events());
  act(t);  // works when there is memory again
  t.w.free(t.p, bytes, t.a);
  t.w.turn(126 * mebibyte, t.b);
  return refused;
}

}  // namespace

TEST_CASE("a host that is short of memory is told from a device that is, and nothing is lost") {
  for (const auto memory : {pagesift::backing::plain, pagesift::backing::virtual_memory}) {
    for (const bool recovers : {false, true}) {
      for (const auto& each : operations()) {
        CAPTURE(each.first);
        CAPTURE(recovers);
        std::uint64_t n = 0;
        while (survives(each.second, memory, n, recovers)) {
          CAPTURE(n);
          ++n;
        }
      }
    }
  }
}
