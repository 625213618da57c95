// Loads libraries that use the default pool, uses them in several threads, unloads them, loads them
// again, forks and exits. Arguments: "shared" or "own", then libraries. With "shared" all have one
// default pool, and this program has it too.
#include "child.hpp"

#include <pagesift/pool/host_pool.hpp>

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <set>
#include <thread>

namespace {

template <typename Result>
Result call(void* library, const char* name) {
  return reinterpret_cast<Result (*)()>(dlsym(library, name))();
}

bool is_right(bool shared, int count, char** libraries) {
  std::set<void*> pools{&pagesift::host_pool::default_pool()};
  std::set<unsigned long long> numbers{pagesift::next_pool_number()};
  for (int i = 0; i < count; ++i) {
    void* const library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return false;
    }
    pools.insert(call<void*>(library, "use_default_pool"));
    std::thread{[library] { (void)call<void*>(library, "use_default_pool"); }}.join();
    numbers.insert(call<unsigned long long>(library, "new_pool_number"));
    if (dlclose(library) != 0) {
      return false;
    }
  }
  return numbers.size() == 1U + static_cast<unsigned>(count) && (!shared || pools.size() == 1);
}

}  // namespace

int main(int argc, char** argv) {
  const bool shared = std::strcmp(argv[1], "shared") == 0;
  for (int round = 0; round < 3; ++round) {
    if (!is_right(shared, argc - 2, argv + 2)) {
      return 1;
    }
    if (code_of_child([&] { return is_right(shared, argc - 2, argv + 2) ? 0 : 1; }) != 0) {
      return 2;
    }
  }
  return 0;
}
