// The judge of the simulated device must see each error that is planted here, and nothing else.
#include <pagesift/backend/simulated.hpp>

#include <doctest/doctest.h>

#include <string>

using pagesift::mebibyte;
using pagesift::simulated_backend;
using pagesift::simulated_device;
using pagesift::simulated_event;
using pagesift::simulated_stream;

namespace {

/// A device with two streams and one acquisition, and what a pool would do by hand.
struct bench {
  static constexpr std::size_t bytes = 2 * mebibyte;

  bench() {
    REQUIRE(backend.acquire(bytes, p).ok());
    REQUIRE(backend.create_event(event).ok());
  }

  /// A user gets the block on `s`, uses it and frees it.
  void user_turn(simulated_stream s) {
    device.hand_out(s, p, bytes);
    device.use(s, p, bytes);
    device.hand_back(s, p, bytes);
  }

  /// Exactly one violation, which says `text`.
  void check_caught(const std::string& text) const {
    const auto violations = device.violations();
    REQUIRE(violations.size() == 1);
    CHECK(violations[0].find(text) != std::string::npos);
  }

  void check_clean() const { CHECK(device.violations().empty()); }

  simulated_device device;
  simulated_backend backend{device};
  simulated_stream a = device.create_stream();
  simulated_stream b = device.create_stream();
  void* p = nullptr;
  simulated_event event;
};

}  // namespace

TEST_CASE("the judge permits reuse on the same stream") {
  bench t;
  t.user_turn(t.a);
  t.user_turn(t.a);
  t.check_clean();
}

TEST_CASE("the judge catches reuse on another stream without an event") {
  bench t;
  t.user_turn(t.a);
  t.user_turn(t.b);
  t.check_caught("not ordered after");
}

TEST_CASE("the judge catches reuse on another stream even where nothing was submitted") {
  bench t;
  t.device.hand_out(t.a, t.p, bench::bytes);
  t.device.hand_back(t.a, t.p, bench::bytes);
  t.device.hand_out(t.b, t.p, bench::bytes);
  t.check_caught("not ordered after");
}

TEST_CASE("the judge permits reuse behind a wait for an event recorded after the free") {
  bench t;
  t.user_turn(t.a);
  REQUIRE(t.backend.record(t.event, t.a).ok());
  REQUIRE(t.backend.wait(t.b, t.event).ok());
  t.user_turn(t.b);
  t.check_clean();
}

TEST_CASE("the judge catches reuse behind an event recorded before the free") {
  bench t;
  REQUIRE(t.backend.record(t.event, t.a).ok());
  t.user_turn(t.a);
  REQUIRE(t.backend.wait(t.b, t.event).ok());
  t.user_turn(t.b);
  t.check_caught("not ordered after");
}

TEST_CASE("the judge catches a wait that saw an earlier record of the event") {
  bench t;
  REQUIRE(t.backend.record(t.event, t.a).ok());
  REQUIRE(t.backend.wait(t.b, t.event).ok());
  t.user_turn(t.a);
  REQUIRE(t.backend.record(t.event, t.a).ok());
  t.user_turn(t.b);
  t.check_caught("not ordered after");
}

TEST_CASE("the judge catches reuse after an event that was asked and was not ready") {
  bench t;
  t.user_turn(t.a);
  REQUIRE(t.backend.record(t.event, t.a).ok());
  REQUIRE(t.backend.query(t.event).not_ready());
  t.user_turn(t.b);
  t.check_caught("not ordered after");
}

TEST_CASE("the judge catches reuse after work completed that nobody asked about") {
  bench t;
  t.user_turn(t.a);
  REQUIRE(t.backend.record(t.event, t.a).ok());
  t.device.run_all();
  t.user_turn(t.b);
  t.check_caught("not ordered after");
}

TEST_CASE("the judge permits reuse after an event that was asked and complete") {
  bench t;
  t.user_turn(t.a);
  REQUIRE(t.backend.record(t.event, t.a).ok());
  t.device.run_all();
  REQUIRE(t.backend.query(t.event).ok());
  t.user_turn(t.b);
  t.check_clean();
}

TEST_CASE("the judge follows order through a third stream") {
  bench t;
  const simulated_stream c = t.device.create_stream();
  t.user_turn(t.a);
  t.device.order(t.a, c);
  t.device.order(c, t.b);
  t.user_turn(t.b);
  t.check_clean();
}

TEST_CASE("the judge catches a third stream that knows the last user but not the one before") {
  bench t;
  const simulated_stream c = t.device.create_stream();
  REQUIRE(t.backend.record(t.event, t.b).ok());  // b's place before it waited for a
  t.user_turn(t.a);
  t.device.order(t.a, t.b);
  t.device.hand_out(t.b, t.p, bench::bytes);
  t.device.hand_back(t.p, bench::bytes);  // freed without a use: a's use is still the last one
  REQUIRE(t.backend.wait(c, t.event).ok());
  t.device.hand_out(c, t.p, bench::bytes);
  t.check_caught("not ordered after");
}

TEST_CASE("the judge catches a part of a block reused too early") {
  bench t;
  t.user_turn(t.a);
  t.device.hand_out(t.b, static_cast<char*>(t.p) + mebibyte, 256);
  t.check_caught("not ordered after");
}

TEST_CASE("the judge catches a block handed out without a stream before the host saw it complete") {
  bench t;
  t.user_turn(t.a);
  t.device.hand_out(t.p, bench::bytes);
  t.check_caught("not ordered after");
}

TEST_CASE("the judge permits a block handed out without a stream after a fence") {
  bench t;
  t.user_turn(t.a);
  REQUIRE(t.backend.fence().ok());
  t.device.hand_out(t.p, bench::bytes);
  t.device.hand_back(t.p, bench::bytes);
  t.check_clean();
}

TEST_CASE("the judge catches bytes that two users have at once") {
  bench t;
  t.device.hand_out(t.a, t.p, mebibyte);
  t.device.hand_out(t.a, static_cast<char*>(t.p) + mebibyte - 256, 512);
  t.check_caught("of which another user has some");
}

TEST_CASE("the judge catches bytes handed out that the backend does not hold") {
  bench t;
  t.device.hand_out(t.a, static_cast<char*>(t.p) + mebibyte, 2 * mebibyte);
  t.check_caught("which the backend does not hold");
}

TEST_CASE("the judge catches a block given back that was not handed out") {
  bench t;
  t.device.hand_out(t.a, t.p, 512);
  t.device.hand_back(t.a, t.p, 256);
  t.check_caught("which was not handed out so");
}

TEST_CASE("the judge catches a release before the host saw the last use complete") {
  bench t;
  t.user_turn(t.a);
  REQUIRE(t.backend.record(t.event, t.a).ok());
  REQUIRE(t.backend.wait(t.b, t.event).ok());  // orders b, tells the host nothing
  CHECK(t.backend.release(t.p, bench::bytes).ok());
  t.check_caught("the host not having seen the end of");
}

TEST_CASE("the judge permits a release after the host waited for the last use") {
  bench t;
  t.user_turn(t.a);
  REQUIRE(t.backend.record(t.event, t.a).ok());
  REQUIRE(t.backend.synchronize(t.event).ok());
  CHECK(t.backend.release(t.p, bench::bytes).ok());
  t.check_clean();
}

TEST_CASE("the judge catches a release of a part") {
  bench t;
  CHECK(t.backend.release(t.p, mebibyte).failed());
  t.check_caught("which was not acquired so");
}

TEST_CASE("the judge catches a second release") {
  bench t;
  CHECK(t.backend.release(t.p, bench::bytes).ok());
  CHECK(t.backend.release(t.p, bench::bytes).failed());
  t.check_caught("which was not acquired so");
}

TEST_CASE("the judge catches a release while a user has the block") {
  bench t;
  t.device.hand_out(t.a, t.p, 256);
  CHECK(t.backend.release(t.p, bench::bytes).ok());
  t.check_caught("of which a user has some");
}

TEST_CASE("the judge remembers uses of a stream that is gone, under whatever handle") {
  bench t;
  t.user_turn(t.a);
  t.device.destroy_stream(t.a);
  const simulated_stream next = t.device.create_stream();
  REQUIRE(next == t.a);
  t.user_turn(next);
  t.check_caught("not ordered after");
}

TEST_CASE("the judge keeps streams apart that count in the same lane one after the other") {
  bench t;
  t.user_turn(t.a);
  REQUIRE(t.backend.fence().ok());
  t.device.destroy_stream(t.a);
  const simulated_stream next = t.device.create_stream();  // takes over the lane
  t.user_turn(next);
  t.user_turn(t.b);
  t.check_caught("not ordered after");
}

TEST_CASE("the judge catches work on a dead stream") {
  bench t;
  t.device.destroy_stream(t.b);
  SUBCASE("inspect") { CHECK(t.backend.inspect(t.b).result.failed()); }
  SUBCASE("record") { CHECK(t.backend.record(t.event, t.b).failed()); }
  SUBCASE("wait") { CHECK(t.backend.wait(t.b, t.event).failed()); }
  SUBCASE("a block handed out") { t.device.hand_out(t.b, t.p, 256); }
  t.check_caught("which is dead");
}

TEST_CASE("the judge catches an event that was destroyed") {
  bench t;
  REQUIRE(t.backend.destroy_event(t.event).ok());
  SUBCASE("record") { CHECK(t.backend.record(t.event, t.a).failed()); }
  SUBCASE("query") { CHECK(t.backend.query(t.event).failed()); }
  SUBCASE("synchronize") { CHECK(t.backend.synchronize(t.event).failed()); }
  SUBCASE("wait") { CHECK(t.backend.wait(t.a, t.event).failed()); }
  SUBCASE("destroy") { CHECK(t.backend.destroy_event(t.event).failed()); }
  t.check_caught("an event that does not exist");
}
