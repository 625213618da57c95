// Requests and frees that a pool serves from its cache, so many that count.py can count their
// instructions: hot_pair BACKEND BYTES PAIRS
#include <pagesift/backend/simulated.hpp>
#include <pagesift/pool/host_pool.hpp>
#include <pagesift/pool/pool.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace {

constexpr long warm_up_pairs = 100;

template <typename Pool>
void run_pairs(Pool& pool, typename Pool::stream_type stream, std::size_t bytes, long pairs) {
  for (long i = 0; i < pairs; ++i) {
    pool.deallocate(pool.allocate(bytes, stream), bytes, stream);
  }
}

/// One thread, one stream, one block: all pairs but the first are hits.
template <typename Pool>
void run(Pool& pool, typename Pool::stream_type stream, std::size_t bytes, long pairs) {
  run_pairs(pool, stream, bytes, warm_up_pairs);
  run_pairs(pool, stream, bytes, pairs);
}

int run_on(const std::string& backend, std::size_t bytes, long pairs) {
  if (backend == "host") {
    pagesift::host_pool pool;
    run(pool, {}, bytes, pairs);
    return EXIT_SUCCESS;
  }
  if (backend == "simulated") {
    pagesift::simulated_options options;
    options.reservation_bytes = pagesift::gibibyte;  // valgrind has no room for what it is else
    pagesift::simulated_device device{options};
    pagesift::basic_pool<pagesift::simulated_backend> pool{pagesift::simulated_backend{device}};
    run(pool, device.create_stream(), bytes, pairs);
    return EXIT_SUCCESS;
  }
  std::fprintf(stderr, "hot_pair: there is no backend '%s'\n", backend.c_str());
  return EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: hot_pair host|simulated BYTES PAIRS\n");
    return EXIT_FAILURE;
  }
  try {
    return run_on(argv[1], std::stoull(argv[2]), std::stol(argv[3]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hot_pair: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
