#include <pagesift/adapters/cub.hpp>

#include <doctest/doctest.h>

#include <cstddef>

namespace {

TEST_CASE("without a pool the default pool of the current device serves") {
  pagesift::device_pool& common = pagesift::device_pool::default_pool();
  const pagesift::pool_stats before = common.stats();
  std::size_t in_use_at_work = 0;
  const auto work = [&](void* temp, std::size_t& bytes) {
    bytes = 1000;
    in_use_at_work = temp == nullptr ? 0 : common.stats().in_use;
    return 0;
  };
  CHECK(pagesift::temp_storage(pagesift::stream{}, work) == 0);
  CHECK(in_use_at_work > before.in_use);
  CHECK(common.stats().in_use == before.in_use);
}

}  // namespace
