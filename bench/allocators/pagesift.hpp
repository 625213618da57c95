// pagesift's pool with default options.
#pragma once

#include "../figures.hpp"
#include "../machine.hpp"

#include <pagesift/adapters/system.hpp>

#include <cstddef>

namespace bench {

class pagesift_pool {
 public:
  static constexpr const char* name = "pagesift";
  static constexpr int warm_up_rounds = 8;

  [[nodiscard]] void* allocate(std::size_t bytes, stream s) { return pool_.allocate(bytes, s); }
  void deallocate(void* p, std::size_t bytes, stream s) noexcept { pool_.deallocate(p, bytes, s); }

  [[nodiscard]] figures report() const {
    const pagesift::pool_stats stats = pool_.stats();
    return {stats.backend_allocations, stats.hits, stats.misses, stats.held, stats.peak_held};
  }

  [[nodiscard]] pagesift::device_pool& pool() noexcept { return pool_; }

 private:
  pagesift::device_pool pool_;
};

}  // namespace bench
