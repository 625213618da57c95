// A pool of host memory, for Thrust's CPU systems and for tests.
#pragma once

#include <pagesift/backend/host.hpp>
#include <pagesift/pool/pool.hpp>

namespace pagesift {

using host_pool = basic_pool<host_backend>;

}  // namespace pagesift
