// pagesift's pool through a handle that is bound to one stream, with the checks that it makes by
// default and with none.
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

}  // namespace bench
