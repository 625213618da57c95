// What the simulated device does with streams, memory, captures and planted faults.
#include <pagesift/backend/simulated.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <set>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using pagesift::blocked_wait;
using pagesift::mebibyte;
using pagesift::outcome;
using pagesift::simulated_backend;
using pagesift::simulated_call;
using pagesift::simulated_capture_mode;
using pagesift::simulated_device;
using pagesift::simulated_event;
using pagesift::simulated_gate;
using pagesift::simulated_options;
using pagesift::simulated_stream;

namespace {

simulated_event new_event(simulated_backend& backend) {
  simulated_event event;
  REQUIRE(backend.create_event(event).ok());
  return event;
}

simulated_options with_wait(blocked_wait policy) {
  simulated_options options;
  options.on_blocked_wait = policy;
  return options;
}

}  // namespace

TEST_CASE("simulated handles come back, ids do not") {
  simulated_device device;
  simulated_backend backend{device};
  std::set<std::uint64_t> handles;
  std::set<pagesift::stream_id> ids;
  for (int i = 0; i < 100; ++i) {
    const simulated_stream s = device.create_stream();
    handles.insert(s.handle);
    ids.insert(backend.inspect(s).id);
    device.destroy_stream(s);
  }
  CHECK(handles.size() == 1);
  CHECK(ids.size() == 100);
}

TEST_CASE("the simulated per-thread stream is another stream in each thread") {
  simulated_device device;
  simulated_backend backend{device};
  const pagesift::stream_id here = backend.inspect(pagesift::simulated_per_thread_stream).id;
  pagesift::stream_id there = here;
  std::thread{[&] { there = backend.inspect(pagesift::simulated_per_thread_stream).id; }}.join();
  CHECK(here != there);
  CHECK(here == backend.inspect(pagesift::simulated_per_thread_stream).id);
  CHECK(here != backend.inspect(simulated_stream{}).id);
}

TEST_CASE("simulated work runs only when told") {
  simulated_device device;
  simulated_backend backend{device};
  const simulated_event event = new_event(backend);
  REQUIRE(backend.record(event, simulated_stream{}).ok());
  CHECK(backend.query(event).not_ready());
  device.run_all();
  CHECK(backend.query(event).ok());
}

TEST_CASE("simulated streams run in another order with another seed, in the same with the same") {
  const auto first_done = [](std::uint64_t seed) {
    simulated_options options;
    options.seed = seed;
    simulated_device device{options};
    simulated_backend backend{device};
    std::vector<simulated_event> events;
    for (int i = 0; i < 20; ++i) {
      events.push_back(new_event(backend));
      REQUIRE(backend.record(events.back(), device.create_stream()).ok());
    }
    device.run_some();
    std::string done;
    for (const simulated_event event : events) {
      done += backend.query(event).ok() ? '1' : '0';
    }
    return done;
  };
  CHECK(first_done(7) == first_done(7));
  std::set<std::string> orders;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    orders.insert(first_done(seed));
  }
  CHECK(orders.size() > 1);
}

TEST_CASE("waiting on the host for one simulated event runs no other stream") {
  simulated_device device;
  simulated_backend backend{device};
  const simulated_event wanted = new_event(backend);
  const simulated_event other = new_event(backend);
  REQUIRE(backend.record(other, device.create_stream()).ok());
  REQUIRE(backend.record(wanted, device.create_stream()).ok());
  CHECK(backend.synchronize(wanted).ok());
  CHECK(backend.query(other).not_ready());
}

TEST_CASE("work behind a simulated wait runs what it waits for, in a stream that is gone too") {
  simulated_device device;
  simulated_backend backend{device};
  const simulated_stream gone = device.create_stream();
  const simulated_stream waiting = device.create_stream();
  const simulated_event event = new_event(backend);
  REQUIRE(backend.record(event, gone).ok());
  REQUIRE(backend.wait(waiting, event).ok());
  device.destroy_stream(gone);
  REQUIRE(backend.record(event, waiting).ok());
  CHECK(backend.synchronize(event).ok());
  CHECK(device.violations().empty());
}

TEST_CASE("the host waiting behind a closed gate is a deadlock unless told otherwise") {
  simulated_device device;
  simulated_backend backend{device};
  const simulated_stream s = device.create_stream();
  const simulated_gate gate = device.gate(s);
  const simulated_event event = new_event(backend);
  REQUIRE(backend.record(event, s).ok());
  SUBCASE("for an event") { CHECK(backend.synchronize(event).failed()); }
  SUBCASE("for everything") { CHECK(backend.fence().failed()); }
  CHECK(device.violations().size() == 1);
  device.open(gate);
  CHECK(backend.synchronize(event).ok());
  CHECK(backend.fence().ok());
  CHECK(device.violations().size() == 1);
}

TEST_CASE("gates can open when the host waits behind them") {
  simulated_device device{with_wait(blocked_wait::opens_gates)};
  simulated_backend backend{device};
  (void)device.gate(simulated_stream{});
  CHECK(backend.fence().ok());
  CHECK(device.violations().empty());
}

TEST_CASE("the host can wait behind a gate until another thread opens it") {
  simulated_device device{with_wait(blocked_wait::waits_for_open)};
  simulated_backend backend{device};
  const simulated_gate gate = device.gate(simulated_stream{});
  std::atomic<bool> waiting{false};
  device.before_calls([&](simulated_call) { waiting = true; });
  std::thread opener{[&] {
    while (!waiting) {
      std::this_thread::yield();
    }
    device.open(gate);
  }};
  CHECK(backend.fence().ok());
  opener.join();
  CHECK(device.violations().empty());
}

TEST_CASE("simulated memory ends at its budget") {
  simulated_options options;
  options.budget_bytes = 6 * mebibyte;
  simulated_device device{options};
  simulated_backend backend{device};
  void* p = nullptr;
  void* q = nullptr;
  CHECK(backend.acquire(8 * mebibyte, p).shortage());
  CHECK(backend.acquire(4 * mebibyte, p).ok());
  CHECK(backend.acquire(4 * mebibyte, q).shortage());
  CHECK(backend.memory().free_bytes == 2 * mebibyte);
  CHECK(backend.memory().total_bytes == 6 * mebibyte);
  CHECK(device.acquired_bytes() == 4 * mebibyte);
  CHECK(backend.release(p, 4 * mebibyte).ok());
  CHECK(backend.acquire(6 * mebibyte, q).ok());
  CHECK(q == p);  // released addresses come back at once
}

TEST_CASE("simulated memory is shortage where no hole is long enough") {
  simulated_options options;
  options.reservation_bytes = 10 * mebibyte;
  simulated_device device{options};
  simulated_backend backend{device};
  void* first = nullptr;
  void* second = nullptr;
  void* third = nullptr;
  REQUIRE(backend.acquire(2 * mebibyte, first).ok());
  REQUIRE(backend.acquire(2 * mebibyte, second).ok());
  REQUIRE(backend.release(first, 2 * mebibyte).ok());
  CHECK(backend.acquire(8 * mebibyte, third).shortage());
  REQUIRE(backend.release(second, 2 * mebibyte).ok());
  CHECK(backend.acquire(8 * mebibyte, third).ok());
}

TEST_CASE("reading or writing through simulated memory faults") {
  simulated_device device;
  simulated_backend backend{device};
  void* p = nullptr;
  REQUIRE(backend.acquire(2 * mebibyte, p).ok());
  for (const bool writes : {false, true}) {
    const pid_t child = fork();
    REQUIRE(child != -1);
    if (child == 0) {
      std::signal(SIGSEGV, SIG_DFL);
      auto* const byte = static_cast<volatile char*>(p);
      if (writes) {
        *byte = 1;
      }
      (void)*byte;
      _exit(0);
    }
    int ending = 0;
    REQUIRE(waitpid(child, &ending, 0) == child);
    CHECK(WIFSIGNALED(ending));
  }
}

TEST_CASE("a planted fault ends the call it names, once or every time, and has no effect") {
  simulated_device device;
  simulated_backend backend{device};
  void* p = nullptr;
  SUBCASE("the second") {
    device.fail({simulated_call::acquire, 2, false, outcome::shortage, 2});
    CHECK(backend.acquire(mebibyte, p).ok());
    CHECK(backend.fence().ok());  // another call is not counted
    CHECK(backend.acquire(mebibyte, p).shortage());
    CHECK(backend.acquire(mebibyte, p).ok());
    CHECK(device.acquired_bytes() == 2 * mebibyte);
  }
  SUBCASE("every second") {
    device.fail({simulated_call::fence, 2, true, outcome::failed, 700});
    for (int i = 0; i < 3; ++i) {
      CHECK(backend.fence().ok());
      const pagesift::status ending = backend.fence();
      CHECK(ending.failed());
      CHECK(ending.code == 700);
    }
    device.clear_faults();
    CHECK(backend.fence().ok());
    CHECK(backend.fence().ok());
  }
  SUBCASE("of any kind") {
    device.fail({{}, 3, false, outcome::failed, 1});
    CHECK(backend.fence().ok());
    CHECK(backend.acquire(mebibyte, p).ok());
    CHECK(backend.inspect(simulated_stream{}).result.failed());
  }
}

TEST_CASE("calls are counted, and kept in order where asked") {
  simulated_options options;
  options.keeps_log = true;
  simulated_device device{options};
  simulated_backend backend{device};
  const simulated_event event = new_event(backend);
  REQUIRE(backend.record(event, simulated_stream{}).ok());
  REQUIRE(backend.query(event).not_ready());
  REQUIRE(backend.query(event).not_ready());
  CHECK(device.calls(simulated_call::query) == 2);
  CHECK(device.calls(simulated_call::acquire) == 0);
  const auto log = device.log();
  REQUIRE(log.size() == 4);
  CHECK(log[0].call == simulated_call::create_event);
  CHECK(log[1].call == simulated_call::record);
  CHECK(log[3].result.not_ready());
  device.reset_calls();
  CHECK(device.calls(simulated_call::query) == 0);
  CHECK(device.log().empty());
}

TEST_CASE("hooks run around each call, and may call the backend") {
  simulated_device device;
  simulated_backend backend{device};
  std::string seen;
  device.before_calls([&](simulated_call call) {
    seen += std::string{"<"} + name_of(call);
    if (call == simulated_call::fence) {
      (void)backend.memory();
    }
  });
  device.after_calls([&](simulated_call call) { seen += std::string{">"} + name_of(call); });
  REQUIRE(backend.fence().ok());
  CHECK(seen == "<fence<memory>memory>fence");
}

TEST_CASE("a capturing simulated stream says so, and only looking at it is harmless") {
  simulated_device device;
  simulated_backend backend{device};
  const simulated_stream s = device.create_stream();
  device.begin_capture(s);
  const pagesift::stream_state state = backend.inspect(s);
  CHECK(state.result.ok());
  CHECK(state.capturing);
  CHECK_FALSE(backend.inspect(device.create_stream()).capturing);
  (void)backend.memory();
  CHECK(device.end_capture(s));
  CHECK_FALSE(backend.inspect(s).capturing);
}

TEST_CASE("a simulated capture is broken by the calls that break a real one") {
  simulated_device device;
  simulated_backend backend{device};
  const simulated_stream s = device.create_stream();
  const simulated_stream other = device.create_stream();
  const simulated_event event = new_event(backend);
  void* held = nullptr;
  REQUIRE(backend.acquire(2 * mebibyte, held).ok());
  REQUIRE(backend.record(event, other).ok());
  device.run_all();
  device.begin_capture(s);
  void* p = nullptr;
  SUBCASE("acquire") { CHECK(backend.acquire(2 * mebibyte, p).failed()); }
  SUBCASE("release") { CHECK(backend.release(held, 2 * mebibyte).failed()); }
  SUBCASE("query") { CHECK(backend.query(event).failed()); }
  SUBCASE("synchronize") { CHECK(backend.synchronize(event).failed()); }
  SUBCASE("a wait on the capturing stream") { CHECK(backend.wait(s, event).failed()); }
  CHECK_FALSE(device.capture_valid(s));
  CHECK(backend.inspect(s).capturing);
  CHECK_FALSE(device.end_capture(s));
}

TEST_CASE("a simulated capture permits events on other streams") {
  simulated_device device;
  simulated_backend backend{device};
  const simulated_stream s = device.create_stream();
  const simulated_stream other = device.create_stream();
  device.begin_capture(s);
  const simulated_event event = new_event(backend);
  CHECK(backend.record(event, other).ok());
  CHECK(backend.wait(device.create_stream(), event).ok());
  CHECK(backend.destroy_event(event).ok());
  CHECK(device.end_capture(s));
}

TEST_CASE("an event recorded into a simulated capture cannot be asked for or waited on outside") {
  simulated_options options;
  options.relaxed_sections = true;
  simulated_device device{options};
  simulated_backend backend{device};
  const simulated_stream s = device.create_stream();
  const simulated_event event = new_event(backend);
  device.begin_capture(s);
  REQUIRE(backend.record(event, s).ok());
  CHECK(device.end_capture(s));
  CHECK(backend.query(event).failed());
  CHECK(backend.synchronize(event).failed());
  CHECK(device.violations().empty());
  CHECK(backend.wait(simulated_stream{}, event).failed());
  CHECK(device.violations().size() == 1);
}

TEST_CASE("the mode of a simulated capture says whose calls break it") {
  simulated_device device;
  simulated_backend backend{device};
  const simulated_stream s = device.create_stream();
  const simulated_event event = new_event(backend);
  const auto query_elsewhere = [&] {
    std::thread{[&] { (void)backend.query(event); }}.join();
    return device.capture_valid(s);
  };
  device.begin_capture(s, simulated_capture_mode::own_thread);
  CHECK(query_elsewhere());
  (void)backend.query(event);
  CHECK_FALSE(device.end_capture(s));

  device.begin_capture(s, simulated_capture_mode::global);
  CHECK_FALSE(query_elsewhere());
  CHECK_FALSE(device.end_capture(s));

  device.begin_capture(s, simulated_capture_mode::relaxed);
  CHECK(backend.query(event).ok());
  CHECK(device.end_capture(s));
}

TEST_CASE("relaxed sections keep a simulated capture valid, and so does a fence") {
  simulated_options options;
  options.relaxed_sections = true;
  simulated_device device{options};
  simulated_backend backend{device};
  const simulated_stream s = device.create_stream();
  const simulated_event event = new_event(backend);
  device.begin_capture(s);
  void* p = nullptr;
  CHECK(backend.acquire(2 * mebibyte, p).ok());
  CHECK(backend.query(event).ok());
  CHECK(backend.synchronize(event).ok());
  CHECK(backend.release(p, 2 * mebibyte).ok());
  CHECK(backend.fence().ok());
  CHECK(device.end_capture(s));
}

TEST_CASE("the memory of a hundred thousand simulated streams is reclaimed") {
  simulated_device device;
  simulated_backend backend{device};
  void* p = nullptr;
  REQUIRE(backend.acquire(2 * mebibyte, p).ok());
  for (int i = 0; i < 100000; ++i) {
    const simulated_stream s = device.create_stream();
    device.hand_out(s, p, 256);
    device.use(s, p, 256);
    device.hand_back(s, p, 256);
    device.synchronize(s);
    device.destroy_stream(s);
  }
  CHECK(device.violations().empty());
}
