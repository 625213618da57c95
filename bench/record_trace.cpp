// pagesift_record_trace FILE: records what a program of Thrust calls asks of its allocator. It
// counts how often each value occurs in arrays of several lengths, by sorting, and keeps the
// results.
#include "allocators/pagesift.hpp"
#include "arrays.hpp"
#include "policies.hpp"
#include "recorder.hpp"

#include <thrust/copy.h>
#include <thrust/device_ptr.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>

#include <cstddef>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>

namespace bench {
namespace {

using recorded_pool = recorder<pagesift_pool>;

/// An array whose memory the recorded allocator serves on the default stream.
template <typename T>
class recorded_array {
 public:
  recorded_array(recorded_pool& pool, std::size_t count)
      : pool_{pool}, bytes_{count * sizeof(T)}, data_{pool.allocate(bytes_, stream{})} {}
  recorded_array(const recorded_array&) = delete;
  recorded_array& operator=(const recorded_array&) = delete;
  ~recorded_array() { pool_.deallocate(data_, bytes_, stream{}); }

  [[nodiscard]] auto begin() const { return thrust::device_pointer_cast(static_cast<T*>(data_)); }

 private:
  recorded_pool& pool_;
  std::size_t bytes_;
  void* data_;
};

/// How often each of the numbers occurs, summed up from the smallest on; the length of the result.
std::size_t count_values(recorded_pool& pool, const machine_array<int>& numbers,
                         std::size_t count) {
  const auto policy = policy_of(pool);
  const recorded_array<int> sorted{pool, count};
  thrust::copy(thrust::device, numbers.begin(), numbers.end(), sorted.begin());
  const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(count);
  thrust::sort(policy, sorted.begin(), end);
  const recorded_array<int> values{pool, count};
  const recorded_array<int> counts{pool, count};
  const auto ends =
      thrust::reduce_by_key(policy, sorted.begin(), end, thrust::constant_iterator<int>{1},
                            values.begin(), counts.begin());
  thrust::inclusive_scan(policy, counts.begin(), ends.second, counts.begin());
  return static_cast<std::size_t>(ends.second - counts.begin());
}

void record(std::ostream& lines) {
  pagesift_pool pool;
  recorded_pool recorded{pool, lines};
  for (const std::size_t count : {1'000, 40'000, 1'000'000, 3'000, 250'000, 40'000}) {
    const machine_array<int> numbers = make_numbers(count, 4);
    if (count_values(recorded, numbers, count) > count) {
      throw std::runtime_error{"more values than numbers"};
    }
  }
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: pagesift_record_trace FILE\n";
    return 2;
  }
  try {
    std::ofstream file{argv[1]};
    bench::record(file);
    if (!file.flush()) {
      std::cerr << "pagesift_record_trace: " << argv[1] << " cannot be written\n";
      return 1;
    }
  } catch (const std::exception& error) {
    std::cerr << "pagesift_record_trace: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
