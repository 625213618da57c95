// Asks for memory while static objects are destroyed: a host pool has some, a device's says that
// the process is exiting.
#include "exit_scene.hpp"

#include <pagesift/core/error.hpp>

namespace {

#if defined(PAGESIFT_TEST_ON_FAKE_CUDA)
constexpr bool is_refused = true;
#else
constexpr bool is_refused = false;
#endif

exit_judge judge;

struct late_user {
  ~late_user() {
    bool refused = false;
    try {
      const owner late{pool_type::default_pool(), 5000};
    } catch (const pagesift::exit_error&) {
      refused = true;
    }
    if (refused != is_refused) {
      std::_Exit(2);
    }
  }
} user;

}  // namespace

int main() {
  { const owner early{pool_type::default_pool(), 5000}; }
  judge.expect_silence();
  return 0;
}
