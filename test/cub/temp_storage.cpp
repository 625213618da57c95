// The two-phase form with calls of our own in place of CUB's: errors in each phase, exceptions.
#include <pagesift/adapters/cub.hpp>
#include <pagesift/backend/simulated.hpp>
#include <pagesift/pool/host_pool.hpp>
#include <pagesift/pool/pool.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

enum class answer { success = 0, refused = 7 };

struct phase {
  void* temp;
  std::size_t bytes;
};

/// A call that asks for `bytes` bytes and writes down what it is given.
class recorded_call {
 public:
  explicit recorded_call(std::size_t bytes) : bytes_{bytes} {}

  answer operator()(void* temp, std::size_t& bytes) {
    phases.push_back({temp, bytes});
    if (phases.size() == fails_in) {
      return answer::refused;
    }
    if (temp == nullptr) {
      bytes = bytes_;
    }
    return answer::success;
  }

  std::vector<phase> phases;
  std::size_t fails_in = 0;  ///< 1 or 2; 0: in neither phase

 private:
  std::size_t bytes_;
};

TEST_CASE("the second phase gets as many bytes as the first asked for") {
  pagesift::host_pool pool;
  recorded_call call{1000};
  CHECK(pagesift::temp_storage(pool, {}, call) == answer::success);
  REQUIRE(call.phases.size() == 2);
  CHECK(call.phases[0].temp == nullptr);
  CHECK(call.phases[0].bytes == 0);
  CHECK(call.phases[1].temp != nullptr);
  CHECK(call.phases[1].bytes == 1000);
  CHECK(reinterpret_cast<std::uintptr_t>(call.phases[1].temp) % 256 == 0);
  CHECK(pool.stats().in_use == 0);
}

TEST_CASE("the second phase gets memory even for 0 bytes: null would be another query") {
  pagesift::host_pool pool;
  recorded_call call{0};
  CHECK(pagesift::temp_storage(pool, {}, call) == answer::success);
  REQUIRE(call.phases.size() == 2);
  CHECK(call.phases[1].temp != nullptr);
  CHECK(call.phases[1].bytes == 0);
  CHECK(pool.stats().in_use == 0);
}

TEST_CASE("an error in the first phase comes back and nothing is allocated") {
  pagesift::host_pool pool;
  recorded_call call{1000};
  call.fails_in = 1;
  CHECK(pagesift::temp_storage(pool, {}, call) == answer::refused);
  CHECK(call.phases.size() == 1);
  CHECK(pool.stats().held == 0);
  CHECK(pool.stats().hits + pool.stats().misses == 0);
}

TEST_CASE("an error in the second phase comes back and the memory is returned") {
  pagesift::host_pool pool;
  recorded_call call{1000};
  call.fails_in = 2;
  CHECK(pagesift::temp_storage(pool, {}, call) == answer::refused);
  CHECK(call.phases.size() == 2);
  CHECK(pool.stats().in_use == 0);
  CHECK(pool.stats().held > 0);
}

TEST_CASE("an exception in either phase passes through and the memory is returned") {
  pagesift::host_pool pool;
  const auto throws_at_once = [](void*, std::size_t&) -> int { throw std::runtime_error{"one"}; };
  const auto throws_at_work = [](void* temp, std::size_t& bytes) -> int {
    bytes = 1000;
    return temp == nullptr ? 0 : throw std::runtime_error{"two"};
  };
  CHECK_THROWS_WITH_AS((void)pagesift::temp_storage(pool, {}, throws_at_once), "one",
                       std::runtime_error);
  CHECK(pool.stats().held == 0);
  CHECK_THROWS_WITH_AS((void)pagesift::temp_storage(pool, {}, throws_at_work), "two",
                       std::runtime_error);
  CHECK(pool.stats().in_use == 0);
  CHECK(pool.stats().held > 0);
}

TEST_CASE("a shortage is an exception and the work is not begun") {
  pagesift::pool_options options;
  options.limit_bytes = 2 * pagesift::mebibyte;
  pagesift::host_pool pool{options};
  recorded_call call{64 * pagesift::mebibyte};
  CHECK_THROWS_AS((void)pagesift::temp_storage(pool, {}, call), pagesift::out_of_memory);
  CHECK(call.phases.size() == 1);
  CHECK(pool.stats().in_use == 0);
}

TEST_CASE("a second run of the same work takes nothing from the backend") {
  pagesift::host_pool pool;
  recorded_call call{100'000};
  (void)pagesift::temp_storage(pool, {}, call);
  const std::uint64_t taken = pool.stats().backend_allocations;
  (void)pagesift::temp_storage(pool, {}, call);
  CHECK(pool.stats().backend_allocations == taken);
  CHECK(call.phases[1].temp == call.phases[3].temp);
}

TEST_CASE("any status will do that compares with its zero") {
  pagesift::host_pool pool;
  const auto number = [](void* temp, std::size_t& bytes) {
    bytes = 1;
    return temp == nullptr ? 0 : 3;
  };
  CHECK(pagesift::temp_storage(pool, {}, number) == 3);
}

TEST_CASE("the memory is taken and returned in the order of the stream") {
  pagesift::simulated_device device;
  pagesift::basic_pool<pagesift::simulated_backend> pool{pagesift::simulated_backend{device}};
  const auto working = device.create_stream();
  const auto other = device.create_stream();
  void* temp = nullptr;
  const auto gate = device.gate(working);
  const auto work = [&](void* p, std::size_t& bytes) {
    bytes = 1000;
    temp = p;
    return 0;
  };
  CHECK(pagesift::temp_storage(pool, working, work) == 0);
  REQUIRE(temp != nullptr);
  void* const elsewhere = pool.allocate(1000, other);
  void* const here = pool.allocate(1000, working);
  CHECK(elsewhere != temp);
  CHECK(here == temp);
  pool.deallocate(elsewhere, 1000, other);
  pool.deallocate(here, 1000, working);
  device.open(gate);
}

}  // namespace
