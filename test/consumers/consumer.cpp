// Two requests of the same size: the second must be served from what the first gave back.
#include <pagesift/pool/host_pool.hpp>

int main() {
  pagesift::host_pool pool;
  for (int i = 0; i < 2; ++i) {
    void* const p = pool.allocate(1000, pagesift::host_stream{});
    pool.deallocate(p, 1000, pagesift::host_stream{});
  }
  return pool.stats().hits == 1 ? 0 : 1;
}
