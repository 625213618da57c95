#include "conformance.hpp"
#include "contents_conformance.hpp"

#include <pagesift/backend/host.hpp>

// The sanitizers end the program at an absurd size unless told to let the allocator return nullptr.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace {

struct host_fixture {
  using backend_type = pagesift::host_backend;

  backend_type& backend() { return backend_; }
  pagesift::host_stream make_stream() { return {}; }
  void drop_stream(pagesift::host_stream) {}

 private:
  backend_type backend_ = pagesift::host_backend::open(-1);
};

}  // namespace

TYPE_TO_STRING(host_fixture);
PAGESIFT_BACKEND_CONFORMANCE(host_fixture);
PAGESIFT_CONTENTS_CONFORMANCE(host_fixture);

TEST_CASE("host memory is page aligned and can be written") {
  pagesift::host_backend backend;
  void* p = nullptr;
  REQUIRE(backend.acquire(3 * pagesift::mebibyte, p).ok());
  CHECK(reinterpret_cast<std::uintptr_t>(p) % pagesift::host_backend::acquisition_alignment == 0);
  auto* const bytes = static_cast<unsigned char*>(p);
  bytes[0] = 1;
  bytes[3 * pagesift::mebibyte - 1] = 2;
  CHECK(bytes[0] + bytes[3 * pagesift::mebibyte - 1] == 3);
  CHECK(backend.release(p, 3 * pagesift::mebibyte).ok());
}
