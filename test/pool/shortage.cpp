// What a pool does when memory is short.
#include "world.hpp"

#include <string>
#include <vector>

namespace {

/// Allocates blocks until the pool says that memory is short.
std::vector<void*> filled(world& w, std::size_t bytes, simulated_stream s) {
  std::vector<void*> blocks;
  try {
    for (;;) {
      blocks.push_back(w.allocate(bytes, s));
    }
  } catch (const pagesift::out_of_memory& e) {
    CHECK(e.report().requested == bytes);
  }
  return blocks;
}

pagesift::shortage_report shortage_of(world& w, std::size_t bytes, simulated_stream s) {
  try {
    w.free(w.allocate(bytes, s), bytes, s);
  } catch (const pagesift::out_of_memory& e) {
    return e.report();
  }
  FAIL_CHECK("no out_of_memory");
  return {};
}

}  // namespace

TEST_CASE("half the limit, freed, makes room for all of it") {
  constexpr std::size_t limit = 64 * mebibyte;
  world w{with_limit(limit), with_budget(256 * mebibyte)};
  const simulated_stream s = w.device.create_stream();
  w.turn(limit / 2, s);
  w.turn(limit, s);
  CHECK(w.pool->stats().peak_held <= limit);
}

TEST_CASE("a limit full of small blocks, freed, makes room for one large one") {
  constexpr std::size_t limit = 32 * mebibyte;
  world w{with_limit(limit), with_budget(256 * mebibyte)};
  const simulated_stream s = w.device.create_stream();
  std::vector<void*> blocks = filled(w, 5000, s);
  CHECK(blocks.size() > 5000);
  for (void* const p : blocks) {
    w.free(p, 5000, s);
  }
  w.turn(limit, s);
  for (void* const p : filled(w, 5000, s)) {
    w.free(p, 5000, s);
  }
}

TEST_CASE("a limit is rounded down to whole pages and never exceeded") {
  world w{with_limit(7 * mebibyte), with_budget(256 * mebibyte)};
  const simulated_stream s = w.device.create_stream();
  for (const std::size_t bytes : {std::size_t{256}, mebibyte, 3 * mebibyte, 6 * mebibyte}) {
    for (void* const p : filled(w, bytes, s)) {
      w.free(p, bytes, s);
    }
  }
  CHECK(w.pool->stats().peak_held == 6 * mebibyte);
  try {
    (void)w.pool->allocate(7 * mebibyte, s);
    FAIL("no exception");
  } catch (const pagesift::out_of_memory& shortage) {
    CHECK(shortage.report().limit == 6 * mebibyte);  // not 7: the message would contradict itself
  }
}

TEST_CASE("a limit holds where the backend's memory is not aligned to pages") {
  simulated_options device_options = with_budget(256 * mebibyte);
  device_options.page_aligned = false;
  world w{with_limit(32 * mebibyte), device_options};
  const simulated_stream s = w.device.create_stream();
  for (const std::size_t bytes : {std::size_t{5000}, 3 * mebibyte, 20 * mebibyte}) {
    for (void* const p : filled(w, bytes, s)) {
      w.free(p, bytes, s);
    }
  }
  CHECK(w.pool->stats().peak_held <= 32 * mebibyte);
  CHECK(w.pool->stats().held == w.held_bytes());
}

TEST_CASE("options out of range are refused") {
  CHECK_THROWS_AS(world{with_limit(0)}, pagesift::invalid_argument);
  CHECK_THROWS_AS(world{with_limit(2 * mebibyte - 1)}, pagesift::invalid_argument);
  pool_options options = with_limit(4 * mebibyte);
  options.initial_bytes = 5 * mebibyte;
  CHECK_THROWS_AS(world{options}, pagesift::invalid_argument);
  options = with_limit(4 * mebibyte - 1);  // one page
  options.initial_bytes = 3 * mebibyte;    // two
  CHECK_THROWS_AS(world{options}, pagesift::invalid_argument);
}

TEST_CASE("initial bytes that cannot be had are out of memory, and nothing is kept") {
  pagesift::simulated_device device{with_budget(8 * mebibyte)};
  pool_options options;
  for (const std::size_t bytes : {10 * mebibyte, std::size_t{1} << 62}) {
    options.initial_bytes = bytes;
    CHECK_THROWS_AS(simulated_pool(pagesift::simulated_backend{device}, options),
                    pagesift::out_of_memory);
  }
  CHECK(device.acquired_bytes() == 0);
}

TEST_CASE("whichever call fails for initial bytes, a pool that is not made keeps nothing") {
  for (const auto result : {pagesift::outcome::failed, pagesift::outcome::shortage}) {
    for (std::uint64_t n = 1; n <= 12; ++n) {
      pagesift::simulated_device device{with_budget(256 * mebibyte)};
      pool_options options = with_backing({});
      options.initial_bytes = 100 * mebibyte;
      device.fail({{}, n, false, result, result == pagesift::outcome::failed ? 700 : 2});
      std::optional<simulated_pool> pool;
      try {
        pool.emplace(pagesift::simulated_backend{device}, options);
      } catch (const std::exception&) {
        CHECK(device.acquired_bytes() + device.physical_bytes() == 0);
        CHECK(device.reserved_bytes() == 0);
        CHECK(device.violations().empty());
      }
    }
  }
}

TEST_CASE("a request above the limit or the device's total fails at once and flushes nothing") {
  pool_options options;
  simulated_options device_options = with_budget(256 * mebibyte);
  std::size_t wanted = 257 * mebibyte;
  SUBCASE("the limit") {
    options.limit_bytes = 100 * mebibyte;
    wanted = 101 * mebibyte;
  }
  SUBCASE("the total") {}
  int asked = 0;
  options.on_shortage = [&](std::size_t) { return ++asked != 0; };
  world w{options, device_options};
  const simulated_stream s = w.device.create_stream();
  w.turn(60 * mebibyte, s);
  const std::size_t idle = w.pool->stats().idle;
  w.device.reset_calls();
  CHECK_THROWS_AS((void)w.pool->allocate(wanted, s), pagesift::out_of_memory);
  CHECK(w.pool->stats().idle == idle);
  CHECK(w.calls_with_effect() == 0);
  CHECK(asked == 0);
}

TEST_CASE("out of memory says what was asked, held, in use, idle, and left on the device") {
  world w{with_limit(64 * mebibyte), with_budget(256 * mebibyte)};
  const simulated_stream s = w.device.create_stream();
  void* const p = w.allocate(40 * mebibyte, s);
  void* const small = w.allocate(10 * mebibyte, s);
  w.free(w.allocate(2 * mebibyte, s), 2 * mebibyte, s);
  const pagesift::shortage_report report = shortage_of(w, 30 * mebibyte, s);
  const pool_stats stats = w.pool->stats();
  CHECK(report.requested == 30 * mebibyte);
  CHECK(report.held == stats.held);
  CHECK(report.in_use == stats.in_use);
  CHECK(report.in_use == 50 * mebibyte);
  CHECK(report.idle == stats.idle);
  CHECK(report.limit == 64 * mebibyte);
  CHECK(report.total_bytes == 256 * mebibyte);
  CHECK(report.free_bytes == 256 * mebibyte - stats.held);
  CHECK(report.largest_idle_block == stats.largest_idle_block);
  w.free(p, 40 * mebibyte, s);
  w.free(small, 10 * mebibyte, s);
}

TEST_CASE("a full device serves a request from what was just freed on another stream") {
  world w{{}, with_budget(64 * mebibyte)};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  SUBCASE("the only stream so far") {}
  SUBCASE("one of two streams") { w.turn(256, b); }
  w.turn(60 * mebibyte, a);
  w.turn(60 * mebibyte, b);
  CHECK(w.pool->stats().peak_held <= 64 * mebibyte);
}

TEST_CASE("on a full device a stream waits for another's memory, and the host does not") {
  world w{{}, with_budget(64 * mebibyte)};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  w.turn(256, b);
  void* const p = w.allocate(48 * mebibyte, a);
  const auto gate = w.device.gate(a);
  w.free(p, 48 * mebibyte, a);
  CHECK(w.turn(48 * mebibyte, b) == p);
  CHECK(w.pool->stats().stream_waits == 1);
  CHECK(w.device.calls(simulated_call::synchronize) == 0);
  CHECK(w.device.calls(simulated_call::fence) == 0);
  w.device.open(gate);
}

TEST_CASE("a shortage takes memory that is complete before the host waits for any") {
  world w{{}, with_budget(64 * mebibyte)};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  void* const p = w.allocate(20 * mebibyte, a);
  w.turn(20 * mebibyte, b);
  w.device.run_all();
  const auto gate = w.device.gate(a);
  w.free(p, 20 * mebibyte, a);
  w.turn(40 * mebibyte, b);  // waiting for the work of a would be a deadlock
  w.device.open(gate);
}

TEST_CASE("memory taken through a wait is ordered for a third stream after both") {
  world w{{}, with_budget(64 * mebibyte)};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  const simulated_stream c = w.device.create_stream();
  w.turn(256, b);
  w.turn(48 * mebibyte, a);
  for (int i = 0; i < 10; ++i) {  // nothing runs meanwhile, so each takes it through a wait
    void* const p = w.pool->allocate(48 * mebibyte, i % 2 == 0 ? b : c);
    w.device.hand_out(i % 2 == 0 ? b : c, p, 48 * mebibyte);
    w.free(p, 48 * mebibyte, i % 2 == 0 ? b : c);
  }
  CHECK(w.pool->stats().stream_waits == 10);
}

TEST_CASE("a shortage ends in the typed error every time, whatever was freed in between") {
  world w{{}, with_budget(32 * mebibyte)};
  const simulated_stream s = w.device.create_stream();
  const simulated_stream other = w.device.create_stream();
  std::vector<void*> blocks;
  for (int round = 0; round < 100; ++round) {
    for (void* const p : filled(w, 700 * kibibyte, round % 2 == 0 ? s : other)) {
      blocks.push_back(p);
    }
    CHECK(blocks.size() >= 32);
    std::vector<void*> kept;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (i % 2 == 0) {
        kept.push_back(blocks[i]);
      } else {
        w.device.order(round % 2 == 0 ? other : s, round % 2 == 0 ? s : other);
        w.free(blocks[i], 700 * kibibyte, round % 2 == 0 ? s : other);
      }
    }
    blocks = kept;
    w.device.order(s, other);
    w.device.order(other, s);
  }
  for (void* const p : blocks) {
    w.free(p, 700 * kibibyte, s);
  }
}

TEST_CASE("fragments are given back and joined until a large request fits") {
  world w{{}, with_budget(128 * mebibyte)};
  const simulated_stream s = w.device.create_stream();
  const std::vector<std::size_t> sizes{3 * mebibyte, 300 * kibibyte, 11 * mebibyte, 4096};
  for (int round = 0; round < 20; ++round) {
    std::vector<void*> blocks;
    for (const std::size_t bytes : sizes) {
      for (int i = 0; i < 4; ++i) {
        blocks.push_back(w.allocate(bytes, s));
      }
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      w.free(blocks[i], sizes[i / 4], s);
    }
    w.turn(128 * mebibyte, s);
  }
}

TEST_CASE("neither a free nor the end of a batch takes memory, on a full device") {
  world w{{}, with_budget(64 * mebibyte)};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  void* const p = w.allocate(32 * mebibyte, a);
  void* const q = w.allocate(32 * mebibyte, b);
  w.device.reset_calls();
  w.free(p, 32 * mebibyte, a);
  w.pool->end_batch();
  w.free(q, 32 * mebibyte, b);
  w.pool->end_batch();
  w.pool->end_batch();
  CHECK(w.device.calls(simulated_call::acquire) == 0);
  CHECK(w.device.calls(simulated_call::create) == 0);
}

TEST_CASE("the user is asked for memory a bounded number of times") {
  pool_options options;
  int asked = 0;
  options.on_shortage = [&](std::size_t bytes) {
    CHECK(bytes == 20 * mebibyte);
    ++asked;
    return true;
  };
  world w{options, with_budget(32 * mebibyte)};
  const simulated_stream s = w.device.create_stream();
  void* const p = w.allocate(20 * mebibyte, s);
  CHECK_THROWS_AS((void)w.pool->allocate(20 * mebibyte, s), pagesift::out_of_memory);
  CHECK(asked == pagesift::max_shortage_calls);
  w.free(p, 20 * mebibyte, s);
}

TEST_CASE("a user who has nothing to give is asked once") {
  pool_options options;
  int asked = 0;
  options.on_shortage = [&](std::size_t) { return ++asked == 0; };
  world w{options, with_budget(32 * mebibyte)};
  const simulated_stream s = w.device.create_stream();
  void* const p = w.allocate(20 * mebibyte, s);
  CHECK_THROWS_AS((void)w.pool->allocate(20 * mebibyte, s), pagesift::out_of_memory);
  CHECK(asked == 1);
  w.free(p, 20 * mebibyte, s);
}

TEST_CASE("the user may free into the pool when asked, and use it otherwise") {
  world* made = nullptr;
  void* victim = nullptr;
  simulated_stream s;
  pool_options options;
  options.on_shortage = [&](std::size_t) {
    made->turn(256, s);
    CHECK(made->pool->stats().in_use >= 20 * mebibyte);
    made->free(victim, 20 * mebibyte, s);
    return true;
  };
  world w{options, with_budget(32 * mebibyte)};
  made = &w;
  s = w.device.create_stream();
  victim = w.allocate(20 * mebibyte, s);
  w.turn(24 * mebibyte, s);
}

TEST_CASE("a user who is asked for memory is not asked for what that takes, in two pools neither") {
  simulated_pool* first = nullptr;
  simulated_pool* second = nullptr;
  simulated_stream s;
  int asked = 0;
  int ended = 0;
  const auto request_of = [&](simulated_pool*& pool) {
    return [&](std::size_t bytes) {
      ++asked;
      CHECK_THROWS_AS((void)pool->allocate(bytes, s), pagesift::out_of_memory);
      ++ended;
      return false;
    };
  };
  pool_options options;
  SUBCASE("of its own pool") { options.on_shortage = request_of(first); }
  SUBCASE("of another whose user asks back") { options.on_shortage = request_of(second); }
  world w{options, with_budget(32 * mebibyte)};
  options.on_shortage = request_of(first);
  simulated_pool other{w.pool->backend(), with_backing(options)};
  first = &*w.pool;
  second = &other;
  s = w.device.create_stream();
  void* const p = w.allocate(20 * mebibyte, s);
  CHECK_THROWS_AS((void)w.pool->allocate(20 * mebibyte, s), pagesift::out_of_memory);
  CHECK(asked <= 2);
  CHECK(ended == asked);
  w.free(p, 20 * mebibyte, s);
}

TEST_CASE("an exception of the user who was asked for memory comes through, and nothing is lost") {
  pool_options options;
  options.on_shortage = [](std::size_t) -> bool { throw std::runtime_error{"mine"}; };
  world w{options, with_budget(32 * mebibyte)};
  const simulated_stream s = w.device.create_stream();
  void* const p = w.allocate(20 * mebibyte, s);
  CHECK_THROWS_WITH_AS((void)w.pool->allocate(20 * mebibyte, s), "mine", std::runtime_error);
  check_invariants(w.pool->stats());
  w.free(p, 20 * mebibyte, s);
  w.turn(24 * mebibyte, s);
}

TEST_CASE("a failure that is no shortage is reported as itself, and nothing is flushed for it") {
  world w{on_plain_memory()};
  const simulated_stream s = w.device.create_stream();
  w.turn(40 * mebibyte, s);
  const pool_stats before = w.pool->stats();
  w.device.reset_calls();
  w.device.fail({simulated_call::acquire, 1, true, pagesift::outcome::failed, 700});
  try {
    (void)w.pool->allocate(90 * mebibyte, s);
    FAIL_CHECK("no error");
  } catch (const pagesift::backend_error& e) {
    CHECK(e.code() == 700);
    CHECK(std::string{e.what()}.find("illegal address") != std::string::npos);
  }
  CHECK(w.pool->stats().idle == before.idle);
  CHECK(w.device.calls(simulated_call::release) == 0);
  CHECK(w.device.calls(simulated_call::fence) == 0);
}

TEST_CASE("a device too full for an event still serves what a fence makes free") {
  world w{{}, with_budget(64 * mebibyte)};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  void* const p = w.allocate(256, b);
  w.turn(40 * mebibyte, a);
  w.turn(10 * mebibyte, b);
  w.device.fail({simulated_call::create_event, 1, true, pagesift::outcome::shortage, 2});
  w.turn(50 * mebibyte, b);
  w.free(p, 256, b);
}

TEST_CASE("pages that an awaited event covers serve another stream without a fence") {
  world w{with_limit(60 * mebibyte)};
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  w.turn(256, b);
  w.pool->trim();
  std::vector<void*> blocks;
  for (int i = 0; i < 3; ++i) {
    blocks.push_back(w.allocate(20 * mebibyte, a));
  }
  for (void* const p : blocks) {
    w.free(p, 20 * mebibyte, a);
  }
  w.turn(46 * mebibyte, a);  // merged; what is left of the pages stays the stream's
  w.pool->retire(a);
  w.device.reset_calls();
  w.turn(60 * mebibyte, b);
  CHECK(w.device.calls(simulated_call::synchronize) != 0);
  CHECK(w.device.calls(simulated_call::fence) == 0);
}

TEST_CASE("a query that fails is no completion: the block stays where it is") {
  world w;
  w.show_two_streams();
  const simulated_stream a = w.device.create_stream();
  const simulated_stream b = w.device.create_stream();
  w.turn(40 * mebibyte, a);
  w.device.fail({simulated_call::query, 1, true, pagesift::outcome::failed, 700});
  CHECK_THROWS_AS((void)w.pool->allocate(40 * mebibyte, b), pagesift::backend_error);
  CHECK(w.pool->stats().in_use == 0);
  w.device.clear_faults();
  w.turn(40 * mebibyte, b);
}

TEST_CASE("a request comes to an end where memory comes and goes and never suffices") {
  simulated_options options = with_budget(2 * mebibyte);  // of which no whole page can be had
  options.page_aligned = false;
  world w{on_plain_memory(), options};
  w.device.fail({simulated_call::release, 2, true, pagesift::outcome::shortage, 2});
  CHECK_THROWS_AS((void)w.pool->allocate(256, simulated_stream{}), pagesift::out_of_memory);
  CHECK(w.pool->stats().held == w.held_bytes());
}
