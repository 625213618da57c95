// What every backend must do, as one suite. A backend's own file defines a fixture and names the
// parts that fit it:
//
//   PAGESIFT_BACKEND_CONFORMANCE(fixture)   every backend
//   PAGESIFT_STREAMS_CONFORMANCE(fixture)   make_stream gives another stream each time
//   PAGESIFT_BLOCKING_CONFORMANCE(fixture)  work of a stream can be held back as well
//
// The cases of virtual memory are in virtual_memory_conformance.hpp.
//
// A fixture is made anew for each test case and has:
//
//   using backend_type
//   backend_type& backend()
//   stream_type make_stream()               a stream with nothing submitted to it
//   void drop_stream(stream_type)
//   void block(stream_type)                 later work of the stream does not run ...
//   void unblock()                          ... until this lets all run that was blocked
#pragma once

#include <pagesift/backend/backend.hpp>
#include <pagesift/core/bytes.hpp>
#include <pagesift/core/size_class.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <vector>

namespace conformance {

using pagesift::mebibyte;

struct piece {
  void* p;
  std::size_t bytes;
};

inline bool overlap(const piece& a, const piece& b) {
  const auto begin_a = reinterpret_cast<std::uintptr_t>(a.p);
  const auto begin_b = reinterpret_cast<std::uintptr_t>(b.p);
  return begin_a < begin_b + b.bytes && begin_b < begin_a + a.bytes;
}

template <typename Backend>
piece acquired(Backend& backend, std::size_t bytes) {
  piece got{nullptr, bytes};
  REQUIRE(backend.acquire(bytes, got.p).ok());
  REQUIRE(got.p != nullptr);
  return got;
}

/// An event that is destroyed with its scope.
template <typename Backend>
class scoped_event {
 public:
  explicit scoped_event(Backend& backend) : backend_{backend} {
    REQUIRE(backend_.create_event(event_).ok());
  }
  scoped_event(const scoped_event&) = delete;
  scoped_event& operator=(const scoped_event&) = delete;
  ~scoped_event() { CHECK(backend_.destroy_event(event_).ok()); }

  typename Backend::event_type get() const { return event_; }

 private:
  Backend& backend_;
  typename Backend::event_type event_{};
};

TEST_CASE_TEMPLATE_DEFINE("acquired pieces are aligned and do not overlap", Fixture,
                          pieces_are_aligned_and_distinct) {
  Fixture fixture;
  auto& backend = fixture.backend();
  std::vector<piece> pieces;
  for (const std::size_t bytes :
       {2 * mebibyte, 6 * mebibyte, std::size_t{1000}, 32 * mebibyte, 2 * mebibyte}) {
    pieces.push_back(acquired(backend, bytes));
    CHECK(reinterpret_cast<std::uintptr_t>(pieces.back().p) % pagesift::default_alignment == 0);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      CHECK_FALSE(overlap(pieces[i], pieces[j]));
    }
  }
  for (const piece& got : pieces) {
    CHECK(backend.release(got.p, got.bytes).ok());
  }
}

TEST_CASE_TEMPLATE_DEFINE("memory that was released can be acquired again", Fixture,
                          released_memory_returns) {
  Fixture fixture;
  auto& backend = fixture.backend();
  for (int round = 0; round < 8; ++round) {
    const piece got = acquired(backend, 64 * mebibyte);
    CHECK(backend.release(got.p, got.bytes).ok());
  }
}

TEST_CASE_TEMPLATE_DEFINE("a size beyond all memory is a shortage and harms nothing", Fixture,
                          absurd_sizes_are_a_shortage) {
  Fixture fixture;
  auto& backend = fixture.backend();
  constexpr std::size_t largest = std::numeric_limits<std::size_t>::max();
  for (const std::size_t bytes : {largest, largest - 255, largest - 2 * mebibyte, largest / 2 + 1,
                                  largest / 2, largest / 4}) {
    void* p = nullptr;
    CHECK(backend.acquire(bytes, p).shortage());
  }
  const piece got = acquired(backend, 2 * mebibyte);
  CHECK(backend.release(got.p, got.bytes).ok());
  CHECK(backend.fence().ok());
}

TEST_CASE_TEMPLATE_DEFINE("free memory is part of the total", Fixture, memory_is_sane) {
  Fixture fixture;
  const pagesift::memory_info memory = fixture.backend().memory();
  CHECK(memory.total_bytes > 0);
  CHECK(memory.free_bytes <= memory.total_bytes);
}

TEST_CASE_TEMPLATE_DEFINE("a stream keeps its id", Fixture, stream_keeps_its_id) {
  Fixture fixture;
  auto& backend = fixture.backend();
  const auto stream = fixture.make_stream();
  const pagesift::stream_state state = backend.inspect(stream);
  REQUIRE(state.result.ok());
  CHECK_FALSE(state.capturing);
  CHECK(backend.inspect(stream).id == state.id);
  fixture.drop_stream(stream);
}

TEST_CASE_TEMPLATE_DEFINE("no two streams have the same id, not even with the same handle", Fixture,
                          ids_never_repeat) {
  Fixture fixture;
  std::vector<pagesift::stream_id> seen;
  for (int i = 0; i < 20; ++i) {
    const auto stream = fixture.make_stream();
    const pagesift::stream_state state = fixture.backend().inspect(stream);
    REQUIRE(state.result.ok());
    for (const pagesift::stream_id earlier : seen) {
      CHECK(state.id != earlier);
    }
    seen.push_back(state.id);
    fixture.drop_stream(stream);
  }
}

TEST_CASE_TEMPLATE_DEFINE("an event that was never recorded is complete", Fixture,
                          unrecorded_event_is_complete) {
  Fixture fixture;
  auto& backend = fixture.backend();
  const auto stream = fixture.make_stream();
  {
    const scoped_event<typename Fixture::backend_type> event{backend};
    CHECK(backend.query(event.get()).ok());
    CHECK(backend.synchronize(event.get()).ok());
    CHECK(backend.wait(stream, event.get()).ok());
  }
  fixture.drop_stream(stream);
}

TEST_CASE_TEMPLATE_DEFINE("an event is complete after the host waited for it, each time", Fixture,
                          event_completes) {
  Fixture fixture;
  auto& backend = fixture.backend();
  const auto stream = fixture.make_stream();
  {
    const scoped_event<typename Fixture::backend_type> event{backend};
    for (int round = 0; round < 3; ++round) {
      REQUIRE(backend.record(event.get(), stream).ok());
      CHECK(backend.synchronize(event.get()).ok());
      CHECK(backend.query(event.get()).ok());
    }
  }
  fixture.drop_stream(stream);
}

TEST_CASE_TEMPLATE_DEFINE("an event is not complete while its stream is blocked", Fixture,
                          event_follows_its_stream) {
  Fixture fixture;
  auto& backend = fixture.backend();
  const auto stream = fixture.make_stream();
  {
    const scoped_event<typename Fixture::backend_type> event{backend};
    fixture.block(stream);
    REQUIRE(backend.record(event.get(), stream).ok());
    CHECK(backend.query(event.get()).not_ready());
    fixture.unblock();
    CHECK(backend.synchronize(event.get()).ok());
    CHECK(backend.query(event.get()).ok());
  }
  fixture.drop_stream(stream);
}

TEST_CASE_TEMPLATE_DEFINE("an event stands for its latest record", Fixture, latest_record_counts) {
  Fixture fixture;
  auto& backend = fixture.backend();
  const auto blocked = fixture.make_stream();
  const auto idle = fixture.make_stream();
  {
    const scoped_event<typename Fixture::backend_type> event{backend};
    fixture.block(blocked);
    REQUIRE(backend.record(event.get(), blocked).ok());
    REQUIRE(backend.record(event.get(), idle).ok());
    CHECK(backend.synchronize(event.get()).ok());
    REQUIRE(backend.record(event.get(), blocked).ok());
    CHECK(backend.query(event.get()).not_ready());
    fixture.unblock();
    CHECK(backend.synchronize(event.get()).ok());
  }
  fixture.drop_stream(blocked);
  fixture.drop_stream(idle);
}

TEST_CASE_TEMPLATE_DEFINE("a wait holds back the stream for the record it saw, and not the host",
                          Fixture, wait_sees_the_record_of_its_time) {
  Fixture fixture;
  auto& backend = fixture.backend();
  const auto blocked = fixture.make_stream();
  const auto waiting = fixture.make_stream();
  const auto idle = fixture.make_stream();
  {
    const scoped_event<typename Fixture::backend_type> event{backend};
    const scoped_event<typename Fixture::backend_type> behind{backend};
    fixture.block(blocked);
    REQUIRE(backend.record(event.get(), blocked).ok());
    REQUIRE(backend.wait(waiting, event.get()).ok());
    REQUIRE(backend.record(event.get(), idle).ok());  // too late to change what is waited for
    CHECK(backend.synchronize(event.get()).ok());
    REQUIRE(backend.record(behind.get(), waiting).ok());
    CHECK(backend.query(behind.get()).not_ready());
    fixture.unblock();
    CHECK(backend.synchronize(behind.get()).ok());
  }
  fixture.drop_stream(blocked);
  fixture.drop_stream(waiting);
  fixture.drop_stream(idle);
}

TEST_CASE_TEMPLATE_DEFINE("an event may be destroyed before it is reached", Fixture,
                          pending_event_may_be_destroyed) {
  Fixture fixture;
  auto& backend = fixture.backend();
  const auto stream = fixture.make_stream();
  fixture.block(stream);
  {
    const scoped_event<typename Fixture::backend_type> event{backend};
    REQUIRE(backend.record(event.get(), stream).ok());
  }
  fixture.unblock();
  CHECK(backend.fence().ok());
  fixture.drop_stream(stream);
}

TEST_CASE_TEMPLATE_DEFINE("after a fence every recorded event is complete", Fixture,
                          fence_waits_for_all) {
  Fixture fixture;
  auto& backend = fixture.backend();
  const auto one = fixture.make_stream();
  const auto other = fixture.make_stream();
  {
    const scoped_event<typename Fixture::backend_type> on_one{backend};
    const scoped_event<typename Fixture::backend_type> on_other{backend};
    REQUIRE(backend.record(on_one.get(), one).ok());
    REQUIRE(backend.record(on_other.get(), other).ok());
    CHECK(backend.fence().ok());
    CHECK(backend.query(on_one.get()).ok());
    CHECK(backend.query(on_other.get()).ok());
  }
  fixture.drop_stream(one);
  fixture.drop_stream(other);
}

TEST_CASE_TEMPLATE_DEFINE("a copy of a backend names the same memory", Fixture,
                          copies_are_the_same_backend) {
  Fixture fixture;
  const piece got = acquired(fixture.backend(), 2 * mebibyte);
  typename Fixture::backend_type copy = fixture.backend();
  CHECK(copy.release(got.p, got.bytes).ok());
}

TEST_CASE_TEMPLATE_DEFINE("every code is described, and only devices that exist are opened",
                          Fixture, codes_and_devices) {
  using backend_type = typename Fixture::backend_type;
  Fixture fixture;
  for (const int code : {0, 2, 700, -1}) {
    CHECK_FALSE(fixture.backend().describe(code).empty());
  }
  CHECK(backend_type::current_device() >= 0);
  CHECK_NOTHROW((void)backend_type::open(-1));
  CHECK_NOTHROW((void)backend_type::open(0));
  CHECK_THROWS_AS((void)backend_type::open(12345), std::exception);
  CHECK_THROWS_AS((void)backend_type::open(-2), std::exception);
}

}  // namespace conformance

#define PAGESIFT_BACKEND_CONFORMANCE(Fixture)                          \
  namespace conformance {                                              \
  TEST_CASE_TEMPLATE_INVOKE(pieces_are_aligned_and_distinct, Fixture); \
  TEST_CASE_TEMPLATE_INVOKE(released_memory_returns, Fixture);         \
  TEST_CASE_TEMPLATE_INVOKE(absurd_sizes_are_a_shortage, Fixture);     \
  TEST_CASE_TEMPLATE_INVOKE(memory_is_sane, Fixture);                  \
  TEST_CASE_TEMPLATE_INVOKE(stream_keeps_its_id, Fixture);             \
  TEST_CASE_TEMPLATE_INVOKE(unrecorded_event_is_complete, Fixture);    \
  TEST_CASE_TEMPLATE_INVOKE(event_completes, Fixture);                 \
  TEST_CASE_TEMPLATE_INVOKE(fence_waits_for_all, Fixture);             \
  TEST_CASE_TEMPLATE_INVOKE(copies_are_the_same_backend, Fixture);     \
  TEST_CASE_TEMPLATE_INVOKE(codes_and_devices, Fixture);               \
  }                                                                    \
  static_assert(pagesift::is_backend_v<Fixture::backend_type>)

#define PAGESIFT_STREAMS_CONFORMANCE(Fixture)           \
  namespace conformance {                               \
  TEST_CASE_TEMPLATE_INVOKE(ids_never_repeat, Fixture); \
  }                                                     \
  static_assert(pagesift::is_backend_v<Fixture::backend_type>)

#define PAGESIFT_BLOCKING_CONFORMANCE(Fixture)                          \
  namespace conformance {                                               \
  TEST_CASE_TEMPLATE_INVOKE(event_follows_its_stream, Fixture);         \
  TEST_CASE_TEMPLATE_INVOKE(latest_record_counts, Fixture);             \
  TEST_CASE_TEMPLATE_INVOKE(wait_sees_the_record_of_its_time, Fixture); \
  TEST_CASE_TEMPLATE_INVOKE(pending_event_may_be_destroyed, Fixture);   \
  }                                                                     \
  static_assert(pagesift::is_backend_v<Fixture::backend_type>)
