#include "each_policy.hpp"

#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

#include <array>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

namespace pagesift_test {
namespace {

using buffer = pagesift::device_buffer<int>;

static_assert(!std::is_copy_constructible_v<buffer>);
static_assert(!std::is_copy_assignable_v<buffer>);
static_assert(std::is_nothrow_move_constructible_v<buffer>);
static_assert(std::is_nothrow_move_assignable_v<buffer>);
static_assert(std::is_nothrow_destructible_v<buffer>);

template <typename Range, typename = void>
constexpr bool can_scatter = false;
template <typename Range>
constexpr bool can_scatter<
    Range, std::void_t<decltype(std::declval<buffer&>().scatter(std::declval<Range>()))>> = true;
template <typename Range, typename = void>
constexpr bool can_gather = false;
template <typename Range>
constexpr bool can_gather<
    Range, std::void_t<decltype(std::declval<buffer&>().gather(std::declval<Range>()))>> = true;

static_assert(can_scatter<const std::vector<int>&>);
static_assert(can_scatter<const std::array<int, 3>&>);
static_assert(can_scatter<const std::array<const int, 3>&>);
static_assert(!can_scatter<const std::vector<double>&>);
static_assert(!can_scatter<int>);
static_assert(can_gather<std::vector<int>&>);
static_assert(!can_gather<const std::vector<int>&>);
static_assert(!can_gather<std::vector<double>&>);

TEST_CASE("a buffer gives back what was put into it") {
  pagesift::device_pool pool;
  for (const std::size_t n : sizes) {
    const std::vector<int> in = random_ints(n, 1 << 30);
    std::vector<int> out(n);
    buffer device{n, pool};
    CHECK(device.size() == n);
    device.scatter(in);
    device.gather(out);
    CHECK(out == in);
    std::vector<int> again(n);
    device.gather(again.data(), again.size());
    CHECK(again == in);
  }
  CHECK(pool.stats().in_use == 0);
}

TEST_CASE("a fresh buffer holds what was left in its memory: nothing fills it") {
  pagesift::device_pool pool;
  const std::vector<int> in = random_ints(1'000'000, 1 << 30);
  buffer{in.size(), pool}.scatter(in);
  std::vector<int> out(in.size());
  buffer{in.size(), pool}.gather(out);
  CHECK(out == in);
}

TEST_CASE("arrays of every kind can be scattered and gathered") {
  buffer device{3};
  const std::array<int, 3> in{1, 2, 3};
  std::array<int, 3> out{};
  device.scatter(in);
  device.gather(out);
  CHECK(out == in);
  const int plain_in[3] = {4, 5, 6};
  int plain_out[3] = {};
  device.scatter(plain_in);
  device.gather(plain_out);
  CHECK(plain_out[0] == 4);
  CHECK(plain_out[2] == 6);
  device.scatter(in.data(), in.size());
  device.gather(plain_out, 3);
  CHECK(plain_out[2] == 3);
}

TEST_CASE("algorithms take a buffer with and without a policy, constant or not") {
  pagesift::device_pool pool;
  buffer device{1000, pool};
  const buffer& constant = device;
  device.scatter(random_ints(1000, 100));
  thrust::transform(device.begin(), device.end(), device.begin(), square{});
  thrust::sort(pagesift::device, device.begin(), device.end());
  CHECK(thrust::reduce(constant.begin(), constant.end()) ==
        thrust::reduce(pool.policy(), device.begin(), device.end()));
  CHECK(constant.end() - constant.begin() == 1000);
  CHECK(thrust::raw_pointer_cast(device.begin()) == device.data());
  CHECK(constant.data() == device.data());
}

TEST_CASE("a size that does not match is refused with both numbers") {
  buffer device{10};
  std::vector<int> nine(9);
  std::vector<int> eleven(11);
  CHECK_THROWS_WITH_AS(device.scatter(nine),
                       "pagesift: scatter needs as many elements as the buffer has, 10, got 9",
                       pagesift::invalid_argument);
  CHECK_THROWS_WITH_AS(device.gather(eleven),
                       "pagesift: gather needs as many elements as the buffer has, 10, got 11",
                       pagesift::invalid_argument);
  CHECK_THROWS_AS(device.gather(nine.data(), 0), pagesift::invalid_argument);
}

TEST_CASE("a buffer whose bytes wrap is refused and changes nothing") {
  pagesift::device_pool pool;
  constexpr std::size_t largest = std::numeric_limits<std::size_t>::max();
  CHECK_THROWS_AS((pagesift::device_buffer<double>{largest / 8 + 1, pool}),
                  pagesift::size_overflow);
  CHECK_THROWS_AS((pagesift::device_buffer<char>{static_cast<std::size_t>(-1), pool}),
                  pagesift::size_overflow);
  CHECK(pool.stats().held == 0);
}

TEST_CASE("an empty buffer takes no memory and copies nothing") {
  pagesift::device_pool pool;
  buffer device{0, pool};
  device.scatter(nullptr, 0);
  device.gather(nullptr, 0);
  CHECK(device.size() == 0);
  CHECK(device.data() == nullptr);
  CHECK(device.begin() == device.end());
  CHECK(thrust::reduce(pool.policy(), device.begin(), device.end()) == 0);
  { const buffer moved{std::move(device)}; }
  CHECK(pool.stats().in_use == 0);
  CHECK(pool.stats().rejected_frees == 0);
}

TEST_CASE("a moved buffer takes its memory and its pool along and leaves an empty one") {
  pagesift::device_pool a;
  pagesift::device_pool b;
  {
    buffer x{1000, a};
    buffer y{2000, b};
    const int* const memory = y.data();
    x = std::move(y);
    CHECK(a.stats().in_use == 0);
    CHECK(x.data() == memory);
    CHECK(x.size() == 2000);
    CHECK(y.size() == 0);  // NOLINT(bugprone-use-after-move): this is what is tested
    CHECK(y.data() == nullptr);
    buffer z{std::move(x)};
    CHECK(z.data() == memory);
    CHECK(x.size() == 0);  // NOLINT(bugprone-use-after-move)
    buffer& same = z;
    z = std::move(same);
    CHECK(z.data() == memory);
    swap(x, z);
    CHECK(x.data() == memory);
  }
  CHECK(b.stats().in_use == 0);
  CHECK(a.stats().rejected_frees == 0);
  CHECK(b.stats().rejected_frees == 0);
}

TEST_CASE("a second buffer of the same size takes nothing from the device") {
  pagesift::device_pool pool;
  { const buffer first{100'000, pool}; }
  const std::uint64_t taken = pool.stats().backend_allocations;
  { const buffer second{100'000, pool.handle(), pagesift::stream{}}; }
  CHECK(pool.stats().backend_allocations == taken);
}

TEST_CASE("a buffer is aligned to 256 bytes, and to more where the element asks for more") {
  struct alignas(1024) wide {
    char value;
  };
  const pagesift::device_buffer<char> bytes{3};
  const pagesift::device_buffer<wide> wides{3};
  CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % 256 == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(wides.data()) % 1024 == 0);
}

TEST_CASE("a shortage says device or host memory, and its numbers") {
  pagesift::pool_options options;
  options.limit_bytes = 4 * pagesift::mebibyte;
  pagesift::device_pool pool{options};
  try {
    const buffer device{10'000'000, pool};
    FAIL("10 million ints do not fit 4 MiB");
  } catch (const pagesift::out_of_memory& e) {
    CHECK(e.report().requested == 40'000'000);
    CHECK(e.report().limit == options.limit_bytes);
    CHECK(std::string{e.what()}.find(pagesift::device_backend::memory_name) != std::string::npos);
  }
}

}  // namespace
}  // namespace pagesift_test
