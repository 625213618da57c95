#include "contents_conformance.hpp"
#include "virtual_memory_conformance.hpp"

#include <pagesift/backend/simulated.hpp>

namespace {

template <bool PageAligned>
struct simulated_fixture {
  using backend_type = pagesift::simulated_backend;

  ~simulated_fixture() {
    CHECK(device_.violations().empty());
    CHECK(device_.physical_bytes() == 0);
    CHECK(device_.reserved_bytes() == 0);
  }

  backend_type& backend() { return backend_; }
  pagesift::simulated_stream make_stream() { return device_.create_stream(); }
  void drop_stream(pagesift::simulated_stream s) { device_.destroy_stream(s); }
  void block(pagesift::simulated_stream s) { (void)device_.gate(s); }
  void unblock() { device_.open_all_gates(); }

 private:
  static pagesift::simulated_options options() {
    pagesift::simulated_options options;
    options.page_aligned = PageAligned;
    return options;
  }

  pagesift::simulated_device device_{options()};
  backend_type backend_{device_};
};

using page_aligned_fixture = simulated_fixture<true>;
using barely_aligned_fixture = simulated_fixture<false>;

}  // namespace

TYPE_TO_STRING(page_aligned_fixture);
PAGESIFT_BACKEND_CONFORMANCE(page_aligned_fixture);
PAGESIFT_CONTENTS_CONFORMANCE(page_aligned_fixture);
PAGESIFT_STREAMS_CONFORMANCE(page_aligned_fixture);
PAGESIFT_BLOCKING_CONFORMANCE(page_aligned_fixture);
PAGESIFT_VIRTUAL_MEMORY_CONFORMANCE(page_aligned_fixture);
TYPE_TO_STRING(barely_aligned_fixture);
PAGESIFT_BACKEND_CONFORMANCE(barely_aligned_fixture);
PAGESIFT_STREAMS_CONFORMANCE(barely_aligned_fixture);
PAGESIFT_BLOCKING_CONFORMANCE(barely_aligned_fixture);
