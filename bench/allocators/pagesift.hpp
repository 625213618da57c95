// pagesift's pool with default options, but for what the workload sets.
#pragma once

#include "../figures.hpp"
#include "../machine.hpp"
#include "../setup.hpp"

#include <pagesift/adapters/system.hpp>

#include <cstddef>

namespace bench {

class pagesift_pool {
 public:
  static constexpr const char* name = "pagesift";
  static constexpr int warm_up_rounds = 8;
  static constexpr bool keeps_memory = true;

  pagesift_pool() = default;
  explicit pagesift_pool(const setup& wanted) : pool_{options(wanted)} {}
  explicit pagesift_pool(const pagesift::pool_options& options) : pool_{options} {}

  [[nodiscard]] void* allocate(std::size_t bytes, stream s) { return pool_.allocate(bytes, s); }
  void deallocate(void* p, std::size_t bytes, stream s) noexcept { pool_.deallocate(p, bytes, s); }

  void trim() { pool_.trim(); }

  [[nodiscard]] figures report() const {
    const pagesift::pool_stats stats = pool_.stats();
    return {stats.backend_allocations, stats.hits, stats.misses, stats.held, stats.peak_held};
  }

  [[nodiscard]] pagesift::device_pool& pool() noexcept { return pool_; }

 private:
  static pagesift::pool_options options(const setup& wanted) {
    pagesift::pool_options options;
    options.initial_bytes = wanted.initial_bytes.value_or(0);
    options.limit_bytes = wanted.limit_bytes;
    return options;
  }

  pagesift::device_pool pool_;
};

}  // namespace bench
