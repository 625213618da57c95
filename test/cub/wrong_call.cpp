// Must not compile, and the compiler must say why in one sentence: see CMakeLists.txt.
#include <pagesift/adapters/cub.hpp>
#include <pagesift/pool/host_pool.hpp>

int main() {
  pagesift::host_pool pool;
#if defined(PAGESIFT_TEST_WRONG_ARGUMENTS)
  (void)pagesift::temp_storage(pool, {}, [](void*, int*) { return 0; });
#elif defined(PAGESIFT_TEST_NO_STATUS)
  (void)pagesift::temp_storage(pool, {}, [](void*, std::size_t&) {});
#else
  return pagesift::temp_storage(pool, {}, [](void*, std::size_t&) { return 0; });
#endif
}
