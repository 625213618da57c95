// A quick exit destroys nothing; it waits for nothing either.
#include "exit_scene.hpp"

namespace {

pool_type static_pool;
owner kept;

}  // namespace

int main() {
  kept = owner{static_pool, 5000};
  const owner other{pool_type::default_pool(), 5000};
  std::quick_exit(0);
}
