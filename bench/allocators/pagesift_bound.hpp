// pagesift's pool in other ways than a user of an allocator has it: through a handle that is bound
// to one stream, with and without the checks that it makes by default, and in checked mode.
#pragma once

#include "pagesift.hpp"

namespace bench {

/// Calls through `on(stream)`; as an allocator among others it is pagesift_pool.
class pagesift_bound : public pagesift_pool {
 public:
  static constexpr const char* name = "pagesift_bound";

  pagesift_bound() = default;

  [[nodiscard]] auto on(stream s) { return pool().on(s); }

 protected:
  explicit pagesift_bound(const pagesift::pool_options& options) : pagesift_pool{options} {}
};

class pagesift_trusted : public pagesift_bound {
 public:
  static constexpr const char* name = "pagesift_trusted";

  pagesift_trusted() : pagesift_bound{trusted()} {}

 private:
  static pagesift::pool_options trusted() {
    pagesift::pool_options options;
    options.checks = pagesift::checks::trusted;
    return options;
  }
};

class pagesift_checked : public pagesift_pool {
 public:
  static constexpr const char* name = "pagesift_checked";

  pagesift_checked() : pagesift_pool{full()} {}

 private:
  static pagesift::pool_options full() {
    pagesift::pool_options options;
    options.checks = pagesift::checks::full;
    return options;
  }
};

}  // namespace bench
