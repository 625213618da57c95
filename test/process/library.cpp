// A shared library that uses the default pool, as it is or hidden.
#include <pagesift/pool/host_pool.hpp>

namespace {

struct last_words {
  void* memory = nullptr;
  ~last_words() { pagesift::host_pool::default_pool().deallocate(memory, 256, {}); }
};

thread_local last_words of_the_thread;
last_words of_the_library;

}  // namespace

/// Uses the default pool in every way a library does. Returns the pool.
extern "C" __attribute__((visibility("default"))) void* use_default_pool() {
  pagesift::host_pool& pool = pagesift::host_pool::default_pool();
  for (last_words* owner : {&of_the_thread, &of_the_library}) {
    if (owner->memory == nullptr) {
      owner->memory = pool.allocate(256, {});
    }
  }
  pool.deallocate(pool.allocate(5000, {}), 5000, {});
  return &pool;
}

/// A number that no pool of the process has had.
extern "C" __attribute__((visibility("default"))) unsigned long long new_pool_number() {
  return pagesift::next_pool_number();
}
