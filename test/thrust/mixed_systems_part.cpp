// Compiled once for each system; PAGESIFT_TEST_RUN is the name of the function it defines.
#include "mixed_systems.hpp"

#include <pagesift/pagesift.hpp>

#include <thrust/sort.h>

#include <functional>
#include <typeinfo>

namespace pagesift_test {

system_report PAGESIFT_TEST_RUN(std::vector<int> values) {
  system_report report;
  report.policy_type = typeid(pagesift::device).name();
  report.buffer_type = typeid(pagesift::device_buffer<int>).name();

  report.sorted_by_device = values;
  thrust::stable_sort(pagesift::device, report.sorted_by_device.data(),
                      report.sorted_by_device.data() + values.size(), std::greater<int>{});

  pagesift::device_pool pool;
  pagesift::device_buffer<int> buffer{values.size(), pool};
  const auto blocks_for_a_sort = [&](const auto& policy) {
    buffer.scatter(values);
    const pagesift::pool_stats before = pool.stats();
    thrust::stable_sort(policy, buffer.data(), buffer.data() + buffer.size(), by_last_digits{});
    const pagesift::pool_stats after = pool.stats();
    return after.hits + after.misses - before.hits - before.misses;
  };
  report.blocks_for_pool_policy = blocks_for_a_sort(pool.policy());
  report.blocks_for_thrust_policy = blocks_for_a_sort(thrust::device(pool.handle()));
  report.sorted_by_pool.resize(values.size());
  buffer.gather(report.sorted_by_pool);
  return report;
}

}  // namespace pagesift_test
