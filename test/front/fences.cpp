// Who passes the heavy side of the asymmetric fence, counted at the system's door. Whether it was
// needed shows only in races that no test can provoke.
#include <pagesift/front/cache_registry.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdarg>
#include <dlfcn.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

using pagesift::asymmetric_fence;
using pagesift::this_thread_mark;

namespace {

std::atomic<int> fences{0};

/// Fences that `act` passes in a thread of its own.
template <typename Act>
int fences_elsewhere(Act&& act) {
  int passed = 0;
  std::thread{[&] {
    const int before = fences;
    act();
    passed = fences - before;
  }}.join();
  return passed;
}

}  // namespace

/// In the place of the C library's `syscall`, which it calls.
extern "C" long counted_syscall(long number, ...) noexcept __asm__("syscall");
extern "C" long counted_syscall(long number, ...) noexcept {
  using function = long (*)(long, ...);
  static const auto real = reinterpret_cast<function>(dlsym(RTLD_NEXT, "syscall"));
  std::va_list arguments;
  va_start(arguments, number);
  long a[6];
  for (long& each : a) {
    each = va_arg(arguments, long);
  }
  va_end(arguments);
  fences += number == __NR_membarrier && a[0] == MEMBARRIER_CMD_PRIVATE_EXPEDITED ? 1 : 0;
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

TEST_CASE("who takes another thread's bias away passes the fence, once") {
  if (!asymmetric_fence::available()) {
    return;
  }
  pagesift::cache_lock lock;
  lock.bias_to(this_thread_mark());
  const auto lock_and_unlock = [&] {
    lock.lock(this_thread_mark());
    lock.unlock();
  };
  CHECK(fences_elsewhere(lock_and_unlock) == 1);
  CHECK(fences_elsewhere(lock_and_unlock) == 0);  // nobody has the bias any more
}

TEST_CASE("who stops all caches passes the fence once, and not for its own") {
  if (!asymmetric_fence::available()) {
    return;
  }
  pagesift::cache_registry all;
  (void)all.make(true);
  (void)all.make(true);
  const auto stop_all = [&] {
    pagesift::pool_lock lock{all};
    lock.freeze();
  };
  const int before = fences;
  stop_all();
  CHECK(fences == before);
  CHECK(fences_elsewhere(stop_all) == 1);
}
