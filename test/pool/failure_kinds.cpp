// What a failed call of the backend is called: it comes out with its own code, or is made up for,
// and is never taken for a shortage. Each call of each way of asking for memory fails in its turn.
#include "capture_scene.hpp"

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

const bool maps = with_backing({}).backing != pagesift::backing::plain;
constexpr std::size_t kept_bytes = 12 * mebibyte;

/// Two streams with idle memory of several sizes, behind work that is not complete.
struct relaxed_device {
  relaxed_device() : w{{}, relaxed(80 * mebibyte)} {
    w.turn(256, b);
    w.turn(5000, a);
    w.turn(40 * mebibyte, a);
    kept = w.allocate(kept_bytes, a);
  }
  ~relaxed_device() {
    w.device.clear_faults();
    w.free(kept, kept_bytes, a);
  }
  relaxed_device(const relaxed_device&) = delete;
  relaxed_device& operator=(const relaxed_device&) = delete;

  /// Only the request is disturbed.
  void request(std::size_t bytes, simulated_stream s) {
    void* const p = w.pool->allocate(bytes, s);
    w.device.clear_faults();
    w.pool->deallocate(p, bytes, s);
  }

  world w;
  simulated_stream a = w.device.create_stream();
  simulated_stream b = w.device.create_stream();
  void* kept = nullptr;
};

using relaxed_operation = std::function<void(relaxed_device&)>;

void capture_request(relaxed_device& t) {
  t.w.device.begin_capture(t.b);
  try {
    t.request(40 * mebibyte, t.b);
  } catch (...) {
    CHECK(t.w.device.end_capture(t.b));
    throw;
  }
  CHECK(t.w.device.end_capture(t.b));
}

void request_without_stream(relaxed_device& t) {
  void* const p = t.w.pool->allocate_sync(40 * mebibyte);
  t.w.device.clear_faults();
  t.w.pool->deallocate_sync(p, 40 * mebibyte);
}

/// Every way of asking for memory. All of them can be met.
std::vector<std::pair<std::string, relaxed_operation>> operations() {
  return {
      {"from its own cache", [](relaxed_device& t) { t.request(5000, t.a); }},
      {"from another stream", [](relaxed_device& t) { t.request(39 * mebibyte, t.b); }},
      {"from new memory", [](relaxed_device& t) { t.request(20 * mebibyte, t.b); }},
      {"from all there is", [](relaxed_device& t) { t.request((maps ? 64 : 40) * mebibyte, t.b); }},
      {"on a bound stream",
       [](relaxed_device& t) {
         (void)t.w.pool->on(t.b);
         t.request(3 * mebibyte, t.b);
       }},
      {"without a stream", request_without_stream},
      {"in a capture", capture_request},
      {"a use on another stream",
       [](relaxed_device& t) { t.w.pool->record_use(t.kept, kept_bytes, t.b); }},
  };
}

enum class ending { well, failure, other };

/// Runs `act` with `fault` planted; `calls` are those that it made.
ending with_fault(const relaxed_operation& act, const pagesift::simulated_fault& fault,
                  bool work_done, std::uint64_t& calls) {
  relaxed_device t;
  if (work_done) {
    t.w.device.run_all();
  }
  calls = 0;
  t.w.device.before_calls([&calls](simulated_call) { ++calls; });
  t.w.device.fail(fault);
  ending came_to = ending::well;
  try {
    act(t);
  } catch (const pagesift::backend_error& e) {
    came_to = e.code() == fault.code ? ending::failure : ending::other;
  } catch (const std::exception&) {
    came_to = ending::other;
  }
  t.w.device.before_calls({});
  return came_to;
}

/// Calls `look(act, work_done)` for every way of asking for memory.
template <typename Look>
void with_each_operation(Look&& look) {
  for (const bool work_done : {false, true}) {
    for (const auto& each : operations()) {
      CAPTURE(each.first);
      look(each.second, work_done);
    }
  }
}

constexpr int fault_code = 700;

}  // namespace

TEST_CASE("a call that fails once is reported with its own code or made up for, never a shortage") {
  int failures = 0;
  with_each_operation([&](const relaxed_operation& act, bool work_done) {
    std::uint64_t calls = 0;
    for (std::uint64_t n = 1; n == 1 || n <= calls + 1; ++n) {
      CAPTURE(n);
      const ending came_to =
          with_fault(act, {{}, n, false, pagesift::outcome::failed, fault_code}, work_done, calls);
      CHECK(came_to != ending::other);
      CHECK((n <= calls || came_to == ending::well));
      failures += came_to == ending::failure ? 1 : 0;
    }
  });
  CHECK(failures > 20);
}

TEST_CASE("calls that always fail are reported with their own code or done without") {
  int failures = 0;
  with_each_operation([&](const relaxed_operation& act, bool work_done) {
    for (std::size_t i = 0; i < pagesift::simulated_call_count; ++i) {
      const auto which = static_cast<simulated_call>(i);
      CAPTURE(name_of(which));
      std::uint64_t calls = 0;
      const ending came_to = with_fault(
          act, {which, 1, true, pagesift::outcome::failed, fault_code}, work_done, calls);
      CHECK(came_to != ending::other);
      failures += came_to == ending::failure ? 1 : 0;
    }
  });
  CHECK(failures > 20);
}
