// Sorts a million numbers twice through the default pool. The second sort allocates nothing.
#include <pagesift/pagesift.hpp>

#include <thrust/sort.h>

#include <cstddef>
#include <cstdio>
#include <vector>

int main() {
  const std::size_t count = 1000000;
  std::vector<int> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    numbers[i] = static_cast<int>((i * 7919) % count);
  }

  for (int round = 1; round <= 2; ++round) {
    pagesift::device_buffer<int> data(count);
    data.scatter(numbers);
    thrust::sort(pagesift::device, data.begin(), data.end());

    std::vector<int> sorted(count);
    data.gather(sorted);
    const pagesift::pool_stats stats = pagesift::device_pool::default_pool().stats();
    std::printf("round %d: %d .. %d, allocations that reached the system so far: %llu\n", round,
                sorted.front(), sorted.back(),
                static_cast<unsigned long long>(stats.backend_allocations));
  }
}
