// Accesses to blocks of a pool that announces them, for a tool to judge: announced WHICH, where
// WHICH is inside, between (two blocks) or freed. Exit status 77: there is no device.
#include <pagesift/pool/cuda_pool.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

namespace {

constexpr std::size_t block_bytes = 1000;

__global__ void write(unsigned char* p) {
  *p = 1;  // the line that a tool must name
}

bool ran(cudaStream_t stream, unsigned char* p) {
  write<<<1, 1, 0, stream>>>(p);
  return cudaGetLastError() == cudaSuccess && cudaStreamSynchronize(stream) == cudaSuccess;
}

/// Writes to the first and the last byte of both blocks, and where `which` says besides.
bool run(const char* which) {
  cudaStream_t stream = nullptr;
  bool good = cudaStreamCreate(&stream) == cudaSuccess;
  pagesift::pool_options options;
  options.announce = true;
  pagesift::cuda_pool pool{options};
  auto* const p = static_cast<unsigned char*>(pool.allocate(block_bytes, stream));
  auto* const q = static_cast<unsigned char*>(pool.allocate(block_bytes, stream));
  for (unsigned char* const block : {p, q}) {
    good = good && ran(stream, block) && ran(stream, block + block_bytes - 1);
  }
  unsigned char* const first = p < q ? p : q;
  if (std::strcmp(which, "between") == 0) {
    good = good && ran(stream, first + block_bytes);
  }
  pool.deallocate(p, block_bytes, stream);
  if (std::strcmp(which, "freed") == 0) {
    good = good && ran(stream, p);
  }
  pool.deallocate(q, block_bytes, stream);
  return cudaStreamDestroy(stream) == cudaSuccess && good;
}

}  // namespace

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: no CUDA device");
    return 77;
  }
  return run(argc > 1 ? argv[1] : "inside") ? 0 : 1;
}
