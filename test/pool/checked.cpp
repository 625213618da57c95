// Checked mode: every mistake that it finds, and that the pool is intact after it.
#include "misuse_scene.hpp"

#include <cstddef>
#include <initializer_list>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

std::byte* at(void* p, std::ptrdiff_t offset) { return static_cast<std::byte*>(p) + offset; }

/// The pool goes on as if nothing had been.
void check_intact(misuse_scene& scene) {
  CHECK(scene.w.pool->stats().in_use == 0);
  check_invariants(scene.w.pool->stats());
  scene.w.turn(4096, scene.s);
  scene.w.pool->trim();
  CHECK(scene.w.held_bytes() == 0);
  CHECK(scene.reports.empty());
}

}  // namespace

TEST_CASE("right use of a checked pool is reported by nothing") {
  misuse_scene scene;
  const simulated_stream other = scene.w.device.create_stream();
  for (const std::size_t bytes :
       std::initializer_list<std::size_t>{0, 1, 255, 256, 257, 5000, 3 * mebibyte, 20 * mebibyte}) {
    for (int i = 0; i < 3; ++i) {
      scene.w.turn(bytes, scene.s);
      scene.w.turn(bytes, other);
      void* const p = scene.w.pool->allocate_sync(bytes);
      scene.w.device.hand_out(p, bytes);
      scene.w.device.hand_back(p, bytes);
      scene.w.pool->deallocate_sync(p, bytes);
      const auto on = scene.w.pool->on(scene.s);
      on.deallocate(on.allocate(bytes), bytes);
    }
  }
  check_intact(scene);
}

TEST_CASE(
    "right use that is short of memory, so that it goes and is moved, is reported by nothing") {
  simulated_options device;
  device.budget_bytes = 256 * mebibyte;
  device.prompt = true;
  misuse_scene scene{{}, device};
  std::mt19937 random{1};
  std::vector<std::pair<void*, std::size_t>> live;
  for (int i = 0; i < 600; ++i) {
    const std::size_t bytes = (std::size_t{1} << (18 + random() % 9)) + random() % 100000;
    try {
      live.emplace_back(scene.w.allocate(bytes, scene.s), bytes);
    } catch (const pagesift::out_of_memory&) {
    }
    while (!live.empty() && random() % 2 == 0) {
      std::swap(live[random() % live.size()], live.back());
      scene.w.free(live.back().first, live.back().second, scene.s);
      live.pop_back();
    }
  }
  for (const auto& [p, bytes] : live) {
    scene.w.free(p, bytes, scene.s);
  }
  check_intact(scene);
}

TEST_CASE("a checked block starts where the alignment asks") {
  misuse_scene scene;
  for (std::size_t alignment = 1; alignment <= pagesift::max_alignment; alignment *= 2) {
    void* const p = scene.w.allocate(1000, scene.s, alignment);
    CHECK(aligned(p, alignment));
    scene.w.free(p, 1000, scene.s);
  }
  check_intact(scene);
}

TEST_CASE("a block freed twice is reported with where it came from and went") {
  misuse_scene scene;
  void* const p = scene.w.allocate(1000, scene.s);
  scene.w.free(p, 1000, scene.s);
  scene.w.pool->deallocate(p, 1000, scene.s);
  const misuse_report report = scene.only_report();
  CHECK(report.kind == misuse::double_free);
  CHECK(report.address == p);
  CHECK(report.bytes == 1000);
  CHECK(report.allocated_on == report.freed_on);
#ifdef PAGESIFT_HAS_CALL_STACKS
  CHECK(report.allocated_at.size() > 0);
  CHECK(report.freed_at.size() > 0);
  CHECK(report.noticed_at.size() > 0);
#endif
  CHECK(scene.w.pool->stats().rejected_frees == 1);
  check_intact(scene);
}

TEST_CASE("a second free in another thread is reported") {
  misuse_scene scene;
  void* const p = scene.w.allocate(1000, scene.s);
  scene.w.free(p, 1000, scene.s);
  std::thread{[&] { scene.w.pool->deallocate(p, 1000, scene.s); }}.join();
  CHECK(scene.only_report().kind == misuse::double_free);
  check_intact(scene);
}

TEST_CASE("a second free through a bound stream or without a stream is reported") {
  misuse_scene scene;
  void* const p = scene.w.allocate(1000, scene.s);
  scene.w.free(p, 1000, scene.s);
  scene.w.pool->on(scene.s).deallocate(p, 1000);
  CHECK(scene.only_report().kind == misuse::double_free);
  scene.w.pool->deallocate_sync(p, 1000);
  CHECK(scene.only_report().kind == misuse::double_free);
  check_intact(scene);
}

TEST_CASE("a pointer that no pool knows is reported") {
  misuse_scene scene;
  int local = 0;
  scene.w.pool->deallocate(&local, sizeof local, scene.s);
  const misuse_report report = scene.only_report();
  CHECK(report.kind == misuse::foreign_pointer);
  CHECK(report.address == &local);
  check_intact(scene);
}

TEST_CASE("a pointer into a block is reported, and into a freed one") {
  misuse_scene scene;
  void* const p = scene.w.allocate(1000, scene.s);
  for (const std::ptrdiff_t offset : {-256, -1, 1, 256, 999, 1000}) {
    scene.w.pool->deallocate(at(p, offset), 1000, scene.s);
    const misuse_report report = scene.only_report();
    CHECK(report.kind == misuse::inner_pointer);
    CHECK(report.block == p);
  }
  CHECK(scene.w.pool->stats().in_use > 0);
  scene.w.free(p, 1000, scene.s);
  scene.w.pool->deallocate(at(p, 256), 1000, scene.s);
  CHECK(scene.only_report().kind == misuse::inner_pointer);
  check_intact(scene);
}

TEST_CASE("a block of another pool is reported, and stays that pool's") {
  misuse_scene scene;
  misuse_scene other;
  void* const p = other.w.allocate(1000, other.s);
  scene.w.pool->deallocate(p, 1000, scene.s);
  const misuse_report report = scene.only_report();
  CHECK(report.kind == misuse::other_pool);
  CHECK(report.block == p);
  other.w.free(p, 1000, other.s);
  CHECK(other.reports.empty());
  check_intact(scene);
}

TEST_CASE("a wrong size is reported, and the block is freed") {
  misuse_scene scene;
  void* const p = scene.w.allocate(1000, scene.s);
  scene.w.device.hand_back(scene.s, p, 1000);
  scene.w.pool->deallocate(p, 999, scene.s);
  const misuse_report report = scene.only_report();
  CHECK(report.kind == misuse::wrong_size);
  CHECK(report.bytes == 1000);
  CHECK(report.given_bytes == 999);
  check_intact(scene);
}

TEST_CASE("a free on another stream is reported only where that was asked for") {
  for (const bool asked : {false, true}) {
    pool_options options;
    options.report_stream_changes = asked;
    misuse_scene scene{options};
    const simulated_stream other = scene.w.device.create_stream();
    void* const p = scene.w.allocate(1000, scene.s);
    scene.w.device.order(scene.s, other);
    scene.w.free(p, 1000, other);
    const auto reports = scene.take_reports();
    CHECK(reports.size() == (asked ? 1 : 0));
    if (asked) {
      CHECK(reports.front().kind == misuse::other_stream);
      CHECK(reports.front().allocated_on != reports.front().noticed_on);
    }
    check_intact(scene);
  }
}

TEST_CASE("bytes written before or behind a block are reported at its free") {
  misuse_scene scene;
  struct wrong_write {
    std::ptrdiff_t offset;
    std::size_t bytes;
    misuse kind;
  };
  for (const wrong_write& wrong :
       {wrong_write{-256, 1, misuse::underrun}, wrong_write{-1, 1, misuse::underrun},
        wrong_write{1000, 1, misuse::overrun}, wrong_write{1010, 200, misuse::overrun},
        wrong_write{1279, 1, misuse::overrun}}) {
    void* const p = scene.w.allocate(1000, scene.s);
    scene.w.device.scribble(at(p, wrong.offset), wrong.bytes, 7);
    scene.w.free(p, 1000, scene.s);
    const misuse_report report = scene.only_report();
    CHECK(report.kind == wrong.kind);
    CHECK(report.block == p);
    CHECK(report.first_wrong_offset == wrong.offset);
    CHECK(report.wrong_bytes == wrong.bytes);
  }
  check_intact(scene);
}

TEST_CASE("red zones of a block for any stream are looked at too") {
  misuse_scene scene;
  void* const p = scene.w.pool->allocate_sync(1000);
  scene.w.device.hand_out(p, 1000);
  scene.w.device.scribble(at(p, 1000), 3, 7);
  scene.w.device.hand_back(p, 1000);
  scene.w.pool->deallocate_sync(p, 1000);
  CHECK(scene.only_report().kind == misuse::overrun);
  check_intact(scene);
}

TEST_CASE("a block for any stream may be freed on one, which sees its red zones") {
  misuse_scene scene;
  void* const p = scene.w.pool->allocate_sync(1000);
  scene.w.device.hand_out(p, 1000);
  scene.w.free(p, 1000, scene.s);
  scene.w.check_no_violations();
  check_intact(scene);
}

TEST_CASE("bytes written after the free are reported when the memory is handed out") {
  misuse_scene scene;
  for (const std::size_t bytes : {std::size_t{1000}, 3 * mebibyte, 20 * mebibyte}) {
    void* const p = scene.w.turn(bytes, scene.s);
    scene.w.device.scribble(at(p, 900), 5, 7);
    CHECK(scene.w.turn(bytes, scene.s) == p);
    const misuse_report report = scene.only_report();
    CHECK(report.kind == misuse::use_after_free);
    CHECK(report.block == p);
    CHECK(report.bytes == bytes);
    CHECK(report.first_wrong_offset == 900);
    CHECK(report.wrong_bytes == 5);
  }
  check_intact(scene);
}

TEST_CASE("bytes written after the free are reported though the memory is cut anew") {
  misuse_scene scene;
  void* const p = scene.w.turn(20 * mebibyte, scene.s);
  scene.w.device.scribble(at(p, 100), 1, 7);
  scene.w.device.scribble(at(p, 12 * mebibyte), 2, 7);
  void* const first = scene.w.allocate(9 * mebibyte, scene.s);
  REQUIRE(first == p);
  CHECK(scene.only_report().first_wrong_offset == 100);
  void* const second = scene.w.allocate(9 * mebibyte, scene.s);
  const misuse_report report = scene.only_report();
  CHECK(report.block == p);
  CHECK(report.first_wrong_offset == static_cast<std::ptrdiff_t>(12 * mebibyte));
  CHECK(report.wrong_bytes == 2);
  scene.w.free(first, 9 * mebibyte, scene.s);
  scene.w.free(second, 9 * mebibyte, scene.s);
  check_intact(scene);
}

TEST_CASE("a freed block that another stream takes is looked at there") {
  misuse_scene scene;
  const simulated_stream other = scene.w.device.create_stream();
  scene.w.turn(256, other);
  void* const p = scene.w.turn(20 * mebibyte, scene.s);
  scene.w.device.scribble(p, 1, 7);
  scene.w.device.synchronize();
  scene.w.pool->retire(scene.s);
  scene.w.device.synchronize();
  CHECK(scene.w.turn(20 * mebibyte, other) == p);
  CHECK(scene.only_report().kind == misuse::use_after_free);
  check_intact(scene);
}

TEST_CASE("memory that was given back and came again holds no poison that could be missed") {
  misuse_scene scene;
  void* const p = scene.w.turn(20 * mebibyte, scene.s);
  scene.w.pool->trim();
  CHECK(scene.w.held_bytes() == 0);
  CHECK(scene.w.turn(20 * mebibyte, scene.s) == p);
  CHECK(scene.reports.empty());
  scene.w.pool->deallocate(p, 20 * mebibyte, scene.s);
  CHECK(scene.only_report().kind == misuse::double_free);
  check_intact(scene);
}

TEST_CASE("a free on a capturing stream leaves the capture valid and reports mistakes") {
  simulated_options relaxed;
  relaxed.relaxed_sections = true;
  misuse_scene scene{{}, relaxed};
  void* const p = scene.w.allocate(1000, scene.s);
  scene.w.device.begin_capture(scene.s);
  scene.w.device.reset_calls();
  scene.w.pool->deallocate(scene.w.pool->allocate(1, scene.s), 1, scene.s);
  scene.w.free(p, 1000, scene.s);
  scene.w.pool->deallocate(p, 1000, scene.s);
  CHECK(scene.only_report().kind == misuse::double_free);
  CHECK(scene.w.device.calls(simulated_call::fill) == 0);
  CHECK(scene.w.device.calls(simulated_call::copy_to_host) == 0);
  CHECK(scene.w.device.end_capture(scene.s));
  scene.w.turn(256, scene.s);
  check_intact(scene);
}

TEST_CASE("a free without a stream leaves a capture valid") {
  simulated_options relaxed;
  relaxed.relaxed_sections = true;
  misuse_scene scene{{}, relaxed};
  const simulated_stream capturing = scene.w.device.create_stream();
  void* const p = scene.w.pool->allocate_sync(1000);
  scene.w.device.hand_out(p, 1000);
  scene.w.device.use(scene.s, p, 1000);
  scene.w.device.begin_capture(capturing);
  scene.w.pool->deallocate(scene.w.pool->allocate(1, capturing), 1, capturing);
  scene.w.device.hand_back(p, 1000);
  scene.w.pool->deallocate_sync(p, 1000);
  CHECK(scene.w.device.end_capture(capturing));
  CHECK(scene.reports.empty());
  scene.w.turn(256, capturing);
  check_intact(scene);
}

TEST_CASE("a block is left as it is at its free once another stream uses it, and no sooner") {
  misuse_scene scene;
  const simulated_stream other = scene.w.device.create_stream();
  for (const bool recorded : {true, false}) {
    void* const p = scene.w.allocate(1000, scene.s);
    if (recorded) {
      scene.w.pool->record_use(p, 1000, other);
    } else {
      scene.w.device.fail({simulated_call::record, 1});
      CHECK_THROWS_AS(scene.w.pool->record_use(p, 1000, other), pagesift::backend_error);
      scene.w.device.clear_faults();
    }
    scene.w.device.scribble(at(p, 1000), 1, 0);
    scene.w.free(p, 1000, scene.s);
    CHECK(scene.take_reports().size() == (recorded ? 0 : 1));
  }
  check_intact(scene);
}

TEST_CASE("patterns that cannot be written or read cost what they would show, nothing else") {
  misuse_scene scene;
  for (const simulated_call call : {simulated_call::fill, simulated_call::copy_to_host}) {
    for (std::uint64_t nth = 1; nth <= 8; ++nth) {
      scene.w.device.fail({call, nth});
      scene.w.turn(1000, scene.s);
      scene.w.turn(1000, scene.s);
      scene.w.device.clear_faults();
      CHECK(scene.reports.empty());
    }
  }
  check_intact(scene);
}

TEST_CASE("red zones of a block for any stream are waited for though any call for them fails") {
  for (const auto call : {simulated_call::fill, simulated_call::copy_to_host}) {
    for (std::uint64_t nth = 1; nth <= 2; ++nth) {
      misuse_scene scene;
      scene.w.device.fail({call, nth});
      void* const p = scene.w.pool->allocate_sync(1000);
      scene.w.device.clear_faults();
      scene.w.device.hand_out(p, 1000);
      scene.w.device.use(scene.s, p, 1000);
      scene.w.free(p, 1000, scene.s);
      scene.w.check_no_violations();
      check_intact(scene);
    }
  }
}

TEST_CASE("a request that fails leaves nothing in the books") {
  misuse_scene scene{with_limit(64 * mebibyte)};
  CHECK_THROWS_AS((void)scene.w.pool->allocate(100 * mebibyte, scene.s), pagesift::out_of_memory);
  CHECK_THROWS_AS((void)scene.w.pool->allocate(~std::size_t{0}, scene.s), pagesift::size_overflow);
  CHECK_THROWS_AS((void)scene.w.pool->allocate(1, 3, scene.s), pagesift::invalid_alignment);
  CHECK_THROWS_AS((void)scene.w.pool->allocate_sync(1, 3), pagesift::invalid_alignment);
  CHECK(scene.w.pool->report_leaks() == 0);
  check_intact(scene);
}

TEST_CASE("blocks in use are reported as leaks, by request and at the end of the pool") {
  std::vector<misuse_report> reports;
  pagesift::simulated_device device;
  const simulated_stream s = device.create_stream();
  void* p = nullptr;
  {
    simulated_pool pool{pagesift::simulated_backend{device}, checked_options(reports)};
    p = pool.allocate(1000, s);
    void* const q = pool.allocate(500, s);
    CHECK(pool.report_leaks() == 2);
    CHECK(reports.size() == 2);
    pool.deallocate(q, 500, s);
    reports.clear();
  }
  REQUIRE(reports.size() == 1);
  CHECK(reports.front().kind == misuse::leak);
  CHECK(reports.front().address == p);
  CHECK(reports.front().bytes == 1000);
}

TEST_CASE("a report is made without a lock: the pool may be used meanwhile") {
  world w;
  const simulated_stream s = w.device.create_stream();
  pool_options options;
  options.checks = pagesift::checks::full;
  simulated_pool* used = nullptr;
  int calls = 0;
  options.on_misuse = [&](const misuse_report&) {
    ++calls;
    std::thread{[&] { used->deallocate(used->allocate(100, s), 100, s); }}.join();
  };
  simulated_pool pool{pagesift::simulated_backend{w.device}, options};
  used = &pool;
  void* const p = pool.allocate(1000, s);
  pool.deallocate(p, 1, s);
  pool.deallocate(p, 1000, s);
  CHECK(calls == 2);
}

TEST_CASE("a pool with other checks does nothing of all this") {
  world w;
  const simulated_stream s = w.device.create_stream();
  w.turn(1000, s);
  w.device.reset_calls();
  w.turn(1000, s);
  CHECK(w.device.calls(simulated_call::fill) == 0);
  CHECK(w.device.calls(simulated_call::copy_to_host) == 0);
  CHECK(w.device.calls(simulated_call::inspect) == 1);
  void* const p = w.allocate(1000, s);
  CHECK(w.pool->report_leaks() == 0);
  w.free(p, 1000, s);
}

TEST_CASE("a report says in words what it knows") {
  misuse_scene scene;
  void* const p = scene.w.allocate(1000, scene.s);
  scene.w.device.scribble(at(p, 1001), 2, 7);
  scene.w.free(p, 1000, scene.s);
  const std::string text = scene.only_report().to_text();
  CHECK(text.find("pagesift: something wrote behind the end of 0x") == 0);
  CHECK(text.find("2 bytes are wrong, the first at offset 1001") != std::string::npos);
  CHECK(text.find("the block has 1000 bytes and was allocated on stream ") != std::string::npos);
#ifdef PAGESIFT_HAS_CALL_STACKS
  CHECK(text.find("allocated at:\n    #0 ") != std::string::npos);
  CHECK(text.find("noticed at:\n    #0 ") != std::string::npos);
#endif
}

TEST_CASE("a block of a graph that is freed outside of its capture is left as it is") {
  simulated_options relaxed;
  relaxed.relaxed_sections = true;
  misuse_scene scene{{}, relaxed};
  const simulated_stream other = scene.w.device.create_stream();
  scene.w.device.begin_capture(scene.s);
  void* const p = scene.w.allocate(1000, scene.s);
  const pagesift::simulated_graph graph = scene.w.device.capture_graph(scene.s);
  scene.w.turn(256, other);
  scene.w.device.reset_calls();
  scene.w.free(p, 1000, other);
  CHECK(scene.w.device.calls(simulated_call::fill) == 0);
  CHECK(scene.w.device.calls(simulated_call::copy_to_host) == 0);
  scene.w.device.destroy(graph);
  scene.w.turn(256, scene.s);
  check_intact(scene);
}
