// Which backends have virtual memory, and what is said where it does not work.
#include <pagesift/backend/host.hpp>
#include <pagesift/backend/simulated.hpp>
#include <pagesift/backend/virtual_memory.hpp>

#include <doctest/doctest.h>

static_assert(pagesift::is_virtual_backend_v<pagesift::simulated_backend>);
static_assert(!pagesift::is_virtual_backend_v<pagesift::host_backend>);
static_assert(!pagesift::is_virtual_backend_v<int>);

TEST_CASE("virtual memory that does not work here is a backend error, with peers and without") {
  pagesift::simulated_options options;
  options.virtual_memory = false;
  pagesift::simulated_device device{options};
  const pagesift::simulated_backend backend{device};
  CHECK_THROWS_WITH_AS(pagesift::require_mappable(backend, {}),
                       "pagesift: can_map failed with code 801 (the device has no virtual memory)",
                       pagesift::backend_error);
  CHECK_THROWS_AS(pagesift::require_mappable(backend, {false, {1}}), pagesift::backend_error);
}

TEST_CASE("the first peer that cannot reach the memory is named") {
  pagesift::simulated_device device;
  const pagesift::simulated_backend backend{device};
  CHECK_THROWS_WITH_AS(pagesift::require_mappable(backend, {false, {3, 4}}),
                       "pagesift: device 3 cannot be a peer of this memory: can_map ended with "
                       "code 101 (there is no such device)",
                       pagesift::invalid_argument);
}
