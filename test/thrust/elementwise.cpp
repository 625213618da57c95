#include "each_policy.hpp"

#include <thrust/copy.h>
#include <thrust/fill.h>
#include <thrust/for_each.h>
#include <thrust/functional.h>
#include <thrust/gather.h>
#include <thrust/random.h>
#include <thrust/replace.h>
#include <thrust/reverse.h>
#include <thrust/scatter.h>
#include <thrust/sequence.h>
#include <thrust/shuffle.h>
#include <thrust/transform.h>

#include <algorithm>
#include <numeric>

namespace pagesift_test {
namespace {

struct add_one {
  PAGESIFT_TEST_FUNCTOR void operator()(int& x) const { ++x; }
};

TEST_CASE("transform squares an array in place and adds two into a third") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      std::vector<int> host = random_ints(n, 1000);
      auto device = at.upload(host);
      auto sum = at.buffer<int>(n);
      thrust::transform(policy, device.begin(), device.end(), device.begin(), square{});
      std::transform(host.begin(), host.end(), host.begin(), square{});
      CHECK(download(device) == host);
      thrust::transform(policy, device.begin(), device.end(), device.begin(), sum.begin(),
                        thrust::plus<int>{});
      std::transform(host.begin(), host.end(), host.begin(), host.begin(), std::plus<int>{});
      CHECK(download(sum) == host);
    }
  });
}

TEST_CASE("for_each visits each element") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      std::vector<int> host = random_ints(n, 1000);
      auto device = at.upload(host);
      thrust::for_each(policy, device.begin(), device.end(), add_one{});
      std::for_each(host.begin(), host.end(), add_one{});
      CHECK(download(device) == host);
    }
  });
}

TEST_CASE("fill, sequence and copy write the whole array") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      auto device = at.buffer<int>(n);
      thrust::fill(policy, device.begin(), device.end(), 42);
      CHECK(download(device) == std::vector<int>(n, 42));
      std::vector<int> counted(n);
      std::iota(counted.begin(), counted.end(), 0);
      thrust::sequence(policy, device.begin(), device.end());
      CHECK(download(device) == counted);
      auto other = at.buffer<int>(n);
      thrust::copy(policy, device.begin(), device.end(), other.begin());
      CHECK(download(other) == counted);
    }
  });
}

TEST_CASE("gather and scatter follow a map, there and back") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      const std::vector<int> host = random_ints(n, 1000);
      std::vector<int> map(n);
      std::iota(map.begin(), map.end(), 0);
      std::shuffle(map.begin(), map.end(), std::minstd_rand{7});
      const auto device_map = at.upload(map);
      const auto in = at.upload(host);
      auto gathered = at.buffer<int>(n);
      auto back = at.buffer<int>(n);
      thrust::gather(policy, device_map.begin(), device_map.end(), in.begin(), gathered.begin());
      thrust::scatter(policy, gathered.begin(), gathered.end(), device_map.begin(), back.begin());
      std::vector<int> expected(n);
      for (std::size_t i = 0; i < n; ++i) {
        expected[i] = host[static_cast<std::size_t>(map[i])];
      }
      CHECK(download(gathered) == expected);
      CHECK(download(back) == host);
    }
  });
}

TEST_CASE("replace_if and reverse change an array in place") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      std::vector<int> host = random_ints(n, 1000);
      auto device = at.upload(host);
      thrust::replace_if(policy, device.begin(), device.end(), is_odd{}, -1);
      std::replace_if(host.begin(), host.end(), is_odd{}, -1);
      CHECK(download(device) == host);
      thrust::reverse(policy, device.begin(), device.end());
      std::reverse(host.begin(), host.end());
      CHECK(download(device) == host);
    }
  });
}

TEST_CASE("shuffle permutes") {
  with_each_policy([](const auto& policy, const place& at) {
    for (const std::size_t n : sizes) {
      std::vector<int> host = random_ints(n, 1000);
      auto device = at.upload(host);
      thrust::shuffle(policy, device.begin(), device.end(), thrust::default_random_engine{3});
      std::vector<int> result = download(device);
      std::sort(host.begin(), host.end());
      std::sort(result.begin(), result.end());
      CHECK(result == host);
    }
  });
}

}  // namespace
}  // namespace pagesift_test
