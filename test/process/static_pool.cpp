// Static pools and static memory of theirs, destroyed in every order: before the pool, after it,
// with the default pool, which is never destroyed. thread_local memory of main's thread goes first.
#include "exit_scene.hpp"

#include <pagesift/core/bytes.hpp>

#include <thread>

namespace {

using pagesift::mebibyte;

exit_judge judge;
owner destroyed_after_the_pool;
owner of_the_default_pool;
pool_type static_pool;
owner destroyed_before_the_pool;
thread_local owner of_a_thread;

}  // namespace

int main() {
  destroyed_after_the_pool = owner{static_pool, 40 * mebibyte};
  destroyed_before_the_pool = owner{static_pool, 5000};
  of_the_default_pool = owner{pool_type::default_pool(), mebibyte};
  of_a_thread = owner{static_pool, 256};
  std::thread{[] { of_a_thread = owner{pool_type::default_pool(), 256}; }}.join();
  { const owner idle{static_pool, 100 * mebibyte}; }
  judge.expect_silence();
  return 0;
}
