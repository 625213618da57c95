#include "mixed_systems.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <random>

namespace pagesift_test {
namespace {

TEST_CASE("parts of a program built for different systems work together") {
  std::minstd_rand random{5};
  std::vector<int> values(3000);
  for (int& value : values) {
    value = static_cast<int>(random() % 100'000);
  }
  const system_report reports[] = {run_on_cpp(values), run_on_omp(values), run_on_tbb(values)};
  std::vector<int> descending = values;
  std::sort(descending.begin(), descending.end(), std::greater<int>{});
  std::stable_sort(values.begin(), values.end(), [](int a, int b) { return a % 1000 < b % 1000; });
  for (const system_report& report : reports) {
    CHECK(report.sorted_by_device == descending);
    CHECK(report.sorted_by_pool == values);
    CHECK(report.blocks_for_pool_policy == report.blocks_for_thrust_policy);
  }
}

TEST_CASE("no name of theirs has two meanings") {
  const system_report cpp = run_on_cpp({});
  const system_report omp = run_on_omp({});
  const system_report tbb = run_on_tbb({});
  CHECK(cpp.policy_type != omp.policy_type);
  CHECK(omp.policy_type != tbb.policy_type);
  CHECK(tbb.policy_type != cpp.policy_type);
  CHECK(cpp.buffer_type != omp.buffer_type);
  CHECK(omp.buffer_type != tbb.buffer_type);
  CHECK(tbb.buffer_type != cpp.buffer_type);
}

}  // namespace
}  // namespace pagesift_test
