// Virtual memory of the simulated device, and what its judge sees there.
#include <pagesift/backend/simulated.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

using pagesift::mebibyte;
using pagesift::outcome;
using pagesift::simulated_backend;
using pagesift::simulated_call;
using pagesift::simulated_device;
using pagesift::simulated_options;
using pagesift::simulated_physical;
using pagesift::simulated_stream;
using pagesift::status;

namespace {

constexpr std::size_t page = 2 * mebibyte;

simulated_options few_pages(bool virtual_memory = true) {
  simulated_options options;
  options.budget_bytes = 8 * page;
  options.virtual_memory = virtual_memory;
  options.keeps_log = true;
  return options;
}

/// Eight reserved pages, a piece of two that is mapped at the first, and one of one that is not.
struct mapping_bench {
  mapping_bench() {
    REQUIRE(backend.reserve(8 * page, base).ok());
    REQUIRE(backend.create(2 * page, {}, two).ok());
    REQUIRE(backend.create(page, {}, one).ok());
    REQUIRE(map(0, 2, two).ok());
    device.reset_calls();
  }

  [[nodiscard]] void* at(std::size_t pages) const {
    return static_cast<char*>(base) + pages * page;
  }
  [[nodiscard]] status map(std::size_t at_page, std::size_t pages, simulated_physical h) {
    return backend.map(at(at_page), pages * page, h, {});
  }
  [[nodiscard]] status unmap(std::size_t at_page, std::size_t pages) {
    return backend.unmap(at(at_page), pages * page);
  }

  /// A user gets the pages on `s`, uses them and frees them.
  void user_turn(simulated_stream s, std::size_t at_page, std::size_t pages) {
    device.hand_out(s, at(at_page), pages * page);
    device.use(s, at(at_page), pages * page);
    device.hand_back(s, at(at_page), pages * page);
  }

  void check_clean() const { CHECK(device.violations().empty()); }

  /// Exactly one violation, which says `text`.
  void check_caught(const std::string& text) const {
    const auto violations = device.violations();
    REQUIRE(violations.size() == 1);
    CAPTURE(violations[0]);
    CHECK(violations[0].find(text) != std::string::npos);
  }

  simulated_device device{few_pages()};
  simulated_backend backend{device};
  simulated_stream a = device.create_stream();
  simulated_stream b = device.create_stream();
  void* base = nullptr;
  simulated_physical two;
  simulated_physical one;
};

}  // namespace

TEST_CASE("a device set up without virtual memory maps nothing") {
  simulated_device device{few_pages(false)};
  simulated_backend backend{device};
  void* p = nullptr;
  simulated_physical h;
  CHECK(backend.can_map({}).failed());
  CHECK(backend.reserve(page, p).failed());
  CHECK(backend.create(page, {}, h).failed());
  CHECK(device.violations().empty());
}

TEST_CASE("created memory and acquired memory share the budget") {
  mapping_bench t;
  CHECK(t.device.physical_bytes() == 3 * page);
  CHECK(t.backend.memory().free_bytes == 5 * page);
  void* p = nullptr;
  simulated_physical h;
  REQUIRE(t.backend.acquire(4 * page, p).ok());
  CHECK(t.backend.create(2 * page, {}, h).shortage());
  CHECK(t.backend.create(page, {}, h).ok());
  CHECK(t.backend.memory().free_bytes == 0);
  CHECK(t.backend.release(p, 4 * page).ok());
  CHECK(t.backend.memory().free_bytes == 4 * page);
  t.check_clean();
}

TEST_CASE("reserved addresses cost nothing of the budget") {
  mapping_bench t;
  void* p = nullptr;
  CHECK(t.backend.reserve(1000 * page, p).ok());
  CHECK(t.device.reserved_bytes() == 1008 * page);
  CHECK(t.backend.memory().free_bytes == 5 * page);
}

TEST_CASE("a destroyed piece counts until it is mapped nowhere") {
  mapping_bench t;
  REQUIRE(t.map(4, 2, t.two).ok());
  CHECK(t.backend.destroy(t.two).ok());
  CHECK(t.device.physical_bytes() == 3 * page);
  CHECK(t.unmap(0, 2).ok());
  CHECK(t.device.physical_bytes() == 3 * page);
  CHECK(t.unmap(4, 2).ok());
  CHECK(t.device.physical_bytes() == page);
  CHECK(t.device.mapped_bytes() == 0);
  t.check_clean();
}

TEST_CASE("a planted fault ends a call of virtual memory and has no effect") {
  struct faulty_call {
    simulated_call which;
    std::function<status(mapping_bench&)> make;
  };
  const std::vector<faulty_call> calls{
      {simulated_call::can_map, [](mapping_bench& t) { return t.backend.can_map({}); }},
      {simulated_call::reserve,
       [](mapping_bench& t) {
         void* p = nullptr;
         return t.backend.reserve(page, p);
       }},
      {simulated_call::unreserve,
       [](mapping_bench& t) { return t.backend.unreserve(t.base, 8 * page); }},
      {simulated_call::create,
       [](mapping_bench& t) {
         simulated_physical h;
         return t.backend.create(page, {}, h);
       }},
      {simulated_call::destroy, [](mapping_bench& t) { return t.backend.destroy(t.one); }},
      {simulated_call::map, [](mapping_bench& t) { return t.map(2, 1, t.one); }},
      {simulated_call::unmap, [](mapping_bench& t) { return t.unmap(0, 2); }}};
  for (const faulty_call& call : calls) {
    const simulated_call which = call.which;
    CAPTURE(name_of(which));
    mapping_bench t;
    t.device.fail({which, 1, false, outcome::failed, 700});
    CHECK(call.make(t).code == 700);
    CHECK(t.device.physical_bytes() == 3 * page);
    CHECK(t.device.mapped_bytes() == 2 * page);
    CHECK(t.device.reserved_bytes() == 8 * page);
    CHECK(t.device.calls(which) == 1);
    REQUIRE(t.device.log().size() == 1);
    CHECK(t.device.log()[0].call == which);
    CHECK(std::string{t.device.log()[0].result.call} == name_of(which));
    t.check_clean();
  }
}

TEST_CASE("mapping and unmapping leave a simulated capture valid") {
  mapping_bench t;
  t.device.begin_capture(t.a);
  CHECK(t.backend.can_map({}).ok());
  CHECK(t.map(2, 1, t.one).ok());
  CHECK(t.unmap(0, 3).ok());
  CHECK(t.backend.destroy(t.one).ok());
  CHECK(t.backend.destroy(t.two).ok());
  CHECK(t.backend.unreserve(t.base, 8 * page).ok());
  CHECK(t.device.end_capture(t.a));
  t.check_clean();
}

TEST_CASE("the judge permits a block that spans mappings side by side") {
  mapping_bench t;
  REQUIRE(t.map(2, 1, t.one).ok());
  t.user_turn(t.a, 0, 3);
  t.user_turn(t.a, 1, 2);
  t.check_clean();
}

TEST_CASE("the judge catches bytes handed out with no memory behind them") {
  mapping_bench t;
  SUBCASE("none at all") { t.device.hand_out(t.a, t.at(4), 256); }
  SUBCASE("none at the end") { t.device.hand_out(t.a, t.at(1), page + 256); }
  SUBCASE("none at the beginning") {
    REQUIRE(t.map(7, 1, t.one).ok());
    t.device.hand_out(t.a, t.at(6), 2 * page);
  }
  SUBCASE("none in the middle") {
    REQUIRE(t.map(3, 1, t.one).ok());
    t.device.hand_out(t.a, t.at(0), 4 * page);
  }
  SUBCASE("none any more") {
    REQUIRE(t.unmap(0, 2).ok());
    t.device.hand_out(t.a, t.at(0), 256);
  }
  t.check_caught("which the backend does not hold");
}

TEST_CASE("the judge catches bytes handed out that are mapped at two addresses") {
  mapping_bench t;
  REQUIRE(t.map(4, 2, t.two).ok());
  SUBCASE("at the first") { t.device.hand_out(t.a, t.at(1), 256); }
  SUBCASE("at the second") { t.device.hand_out(t.a, t.at(5), 256); }
  t.check_caught("of which some is mapped at other addresses too");
}

TEST_CASE("the judge permits a piece at two addresses while it moves") {
  mapping_bench t;
  t.user_turn(t.a, 0, 2);
  REQUIRE(t.backend.fence().ok());
  REQUIRE(t.map(4, 2, t.two).ok());
  REQUIRE(t.unmap(0, 2).ok());
  t.user_turn(t.b, 4, 2);
  t.check_clean();
}

TEST_CASE("the judge catches an unmapping before the host saw the last use complete") {
  mapping_bench t;
  t.user_turn(t.a, 1, 1);
  t.device.order(t.a, t.b);  // orders b, tells the host nothing
  CHECK(t.unmap(0, 2).ok());
  t.check_caught("the host not having seen the end of");
}

TEST_CASE("the judge permits an unmapping after the host waited for the last use") {
  mapping_bench t;
  t.user_turn(t.a, 1, 1);
  t.device.synchronize(t.a);
  CHECK(t.unmap(0, 2).ok());
  t.check_clean();
}

TEST_CASE("the judge catches an unmapping while a user has some of it") {
  mapping_bench t;
  t.device.hand_out(t.a, t.at(1), 256);
  CHECK(t.unmap(0, 2).ok());
  t.check_caught("of which a user has some");
}

TEST_CASE("the judge catches an unmapping of what is not whole mappings") {
  mapping_bench t;
  REQUIRE(t.map(2, 1, t.one).ok());
  SUBCASE("the first half of one") { CHECK(t.unmap(0, 1).failed()); }
  SUBCASE("the second half of one") { CHECK(t.unmap(1, 1).failed()); }
  SUBCASE("one and a half") { CHECK(t.unmap(1, 2).failed()); }
  SUBCASE("more than there is") { CHECK(t.unmap(2, 2).failed()); }
  SUBCASE("nothing there") { CHECK(t.unmap(5, 1).failed()); }
  SUBCASE("of no size") { CHECK(t.unmap(0, 0).failed()); }
  SUBCASE("of no size, between two") { CHECK(t.unmap(2, 0).failed()); }
  SUBCASE("of a size that wraps") {
    CHECK(t.backend.unmap(t.base, ~std::size_t{0} - page + 1).failed());
  }
  SUBCASE("with a gap") {
    REQUIRE(t.unmap(2, 1).ok());
    REQUIRE(t.map(3, 1, t.one).ok());
    CHECK(t.unmap(0, 4).failed());
  }
  CHECK(t.device.mapped_bytes() == 3 * page);
  t.check_caught("which are not whole mappings");
}

TEST_CASE("the judge catches a second unmapping") {
  mapping_bench t;
  REQUIRE(t.unmap(0, 2).ok());
  CHECK(t.unmap(0, 2).failed());
  t.check_caught("which are not whole mappings");
}

TEST_CASE("the judge catches a mapping over a mapping") {
  mapping_bench t;
  SUBCASE("over its beginning") { CHECK(t.map(0, 1, t.one).failed()); }
  SUBCASE("over its end") { CHECK(t.map(1, 1, t.one).failed()); }
  CHECK(t.device.mapped_bytes() == 2 * page);
  t.check_caught("of which some are mapped already");
}

TEST_CASE("the judge catches a mapping of a piece that is larger, smaller or not there") {
  mapping_bench t;
  SUBCASE("a part") { CHECK(t.map(4, 1, t.two).failed()); }
  SUBCASE("more than there is") { CHECK(t.map(4, 3, t.two).failed()); }
  SUBCASE("nothing") { CHECK(t.map(4, 0, t.two).failed()); }
  SUBCASE("no piece") { CHECK(t.map(4, 1, {}).failed()); }
  SUBCASE("a destroyed piece") {
    REQUIRE(t.backend.destroy(t.two).ok());
    CHECK(t.map(4, 2, t.two).failed());
  }
  t.check_caught("but it has");
}

TEST_CASE("the judge catches a mapping outside a reservation") {
  mapping_bench t;
  SUBCASE("at its end") { CHECK(t.map(7, 2, t.two).failed()); }
  SUBCASE("between pages") {
    CHECK(t.backend.map(static_cast<char*>(t.base) + 4 * page + 256, page, t.one, {}).failed());
  }
  SUBCASE("in acquired memory") {
    void* p = nullptr;
    REQUIRE(t.backend.acquire(page, p).ok());
    CHECK(t.backend.map(p, page, t.one, {}).failed());
  }
  t.check_caught("which are not pages of one reservation");
}

TEST_CASE("the judge catches a piece destroyed twice or never created") {
  mapping_bench t;
  SUBCASE("twice") {
    REQUIRE(t.backend.destroy(t.one).ok());
    CHECK(t.backend.destroy(t.one).failed());
  }
  SUBCASE("twice, and still mapped") {
    REQUIRE(t.backend.destroy(t.two).ok());
    CHECK(t.backend.destroy(t.two).failed());
  }
  SUBCASE("none") { CHECK(t.backend.destroy({}).failed()); }
  t.check_caught("which does not exist");
}

TEST_CASE("the judge catches addresses given back that were not reserved so") {
  mapping_bench t;
  SUBCASE("a part") { CHECK(t.backend.unreserve(t.base, 4 * page).failed()); }
  SUBCASE("from the middle") { CHECK(t.backend.unreserve(t.at(4), 4 * page).failed()); }
  SUBCASE("twice") {
    REQUIRE(t.unmap(0, 2).ok());
    REQUIRE(t.backend.unreserve(t.base, 8 * page).ok());
    CHECK(t.backend.unreserve(t.base, 8 * page).failed());
  }
  t.check_caught("which were not reserved so");
}

TEST_CASE("the judge catches addresses given back with memory behind them") {
  mapping_bench t;
  CHECK(t.backend.unreserve(t.base, 8 * page).failed());
  t.check_caught("of which some are mapped");
}

TEST_CASE("the judge catches a release of mapped memory") {
  mapping_bench t;
  CHECK(t.backend.release(t.base, 2 * page).failed());
  t.check_caught("which was not acquired so");
}
