// Makes one mistake with a pool: debugging MISTAKE. With PAGESIFT_CHECKS=full in the environment
// the pool says which.
#include <pagesift/pool/host_pool.hpp>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

namespace {

constexpr std::size_t bytes = 1000;
const pagesift::host_stream stream;  // on CUDA: a cudaStream_t

void* make_block(pagesift::host_pool& pool) {
  void* const p = pool.allocate(bytes, stream);
  std::memset(p, 0, bytes);
  return p;
}

void make(const std::string& mistake, pagesift::host_pool& pool) {
  void* const p = make_block(pool);
  if (mistake == "leak") {
    return;
  }
  if (mistake == "overrun") {
    std::memset(p, 1, bytes + 4);
  }
  pool.deallocate(p, mistake == "wrong_size" ? bytes - 1 : bytes, stream);
  if (mistake == "double_free") {
    pool.deallocate(p, bytes, stream);
  }
  if (mistake == "use_after_free") {
    std::memset(p, 1, 8);
    pool.deallocate(make_block(pool), bytes, stream);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    pagesift::host_pool pool;
    make(argc > 1 ? argv[1] : "none", pool);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::puts("done");
}
