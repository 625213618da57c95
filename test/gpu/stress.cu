// Stress on a GPU: see test/stress/stress_run.hpp. Exit code 1 on any mismatch or failure.
#include "../stress/stress_run.hpp"

#include <pagesift/pool/cuda_pool.hpp>

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

void require(cudaError_t error) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(error));
    std::exit(1);
  }
}

__global__ void fill_kernel(unsigned* words, std::size_t count, unsigned value) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    words[i] = value + static_cast<unsigned>(i);
  }
}

__global__ void check_kernel(const unsigned* words, std::size_t count, unsigned value,
                             unsigned long long* wrong) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  unsigned long long found = 0;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    found += words[i] != value + static_cast<unsigned>(i) ? 1 : 0;
  }
  if (found != 0) {
    atomicAdd(wrong, found);
  }
}

/// A GPU as a machine. Its calls are made by many threads at once.
class gpu_machine {
 public:
  using pool_type = pagesift::cuda_pool;
  using stream_type = cudaStream_t;

  gpu_machine() {
    require(cudaMalloc(&wrong_, sizeof *wrong_));
    require(cudaMemset(wrong_, 0, sizeof *wrong_));
  }
  gpu_machine(const gpu_machine&) = delete;
  gpu_machine& operator=(const gpu_machine&) = delete;
  ~gpu_machine() { (void)cudaFree(wrong_); }

  stream_type make_stream() {
    stream_type s = nullptr;
    require(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    return s;
  }
  void destroy_stream(stream_type s) { require(cudaStreamDestroy(s)); }
  void synchronize(stream_type s) { require(cudaStreamSynchronize(s)); }

  void order(stream_type from, stream_type to) {
    cudaEvent_t event = nullptr;
    require(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    require(cudaEventRecord(event, from));
    require(cudaStreamWaitEvent(to, event, 0));
    require(cudaEventDestroy(event));
  }

  void fill(void* p, std::size_t bytes, unsigned value, stream_type s) {
    const std::size_t words = bytes / sizeof(unsigned);
    fill_kernel<<<blocks_for(words), threads, 0, s>>>(static_cast<unsigned*>(p), words, value);
    require(cudaGetLastError());
  }
  void check(const void* p, std::size_t bytes, unsigned value, stream_type s) {
    const std::size_t words = bytes / sizeof(unsigned);
    check_kernel<<<blocks_for(words), threads, 0, s>>>(static_cast<const unsigned*>(p), words,
                                                       value, wrong_);
    require(cudaGetLastError());
  }

  /// Waits for everything.
  [[nodiscard]] std::uint64_t mismatches() {
    unsigned long long wrong = 0;
    require(cudaDeviceSynchronize());
    require(cudaMemcpy(&wrong, wrong_, sizeof wrong, cudaMemcpyDeviceToHost));
    return wrong;
  }

 private:
  static constexpr unsigned threads = 256;

  static unsigned blocks_for(std::size_t words) {
    const std::size_t blocks = (words + threads - 1) / threads;
    return static_cast<unsigned>(std::min<std::size_t>(blocks, 1024));
  }

  unsigned long long* wrong_ = nullptr;
};

constexpr int exit_skipped = 77;
constexpr const char* usage =
    "usage: pagesift_stress [--seconds N] [--threads N] [--streams N] [--seed N] [--limit-mib N]\n"
    "                       [--json] [--plain]\n";

struct arguments {
  stress::settings run;
  std::size_t limit = std::size_t{4} << 30;
  bool json = false;
  bool plain = false;
};

bool set_number(arguments& asked, const char* name, double value) {
  const auto is = [name](const char* other) { return std::strcmp(name, other) == 0; };
  if (is("--seconds")) {
    asked.run.seconds = value;
  } else if (is("--threads")) {
    asked.run.threads = static_cast<unsigned>(value);
  } else if (is("--streams")) {
    asked.run.streams = static_cast<unsigned>(value);
  } else if (is("--seed")) {
    asked.run.seed = static_cast<std::uint64_t>(value);
  } else if (is("--limit-mib")) {
    asked.limit = static_cast<std::size_t>(value) << 20;
  } else {
    return false;
  }
  return true;
}

bool parse(int argc, char** argv, arguments& asked) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) {
      asked.json = true;
    } else if (std::strcmp(argv[i], "--plain") == 0) {
      asked.plain = true;
    } else {
      char* end = nullptr;
      const double value = i + 1 < argc ? std::strtod(argv[i + 1], &end) : -1;
      if (end == nullptr || *end != '\0' || value <= 0 || !set_number(asked, argv[i], value)) {
        return false;
      }
      ++i;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  arguments asked;
  if (!parse(argc, argv, asked)) {
    std::fputs(usage, stderr);
    return 2;
  }
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver) {
    std::printf("skipped: no CUDA device (%s)\n", cudaGetErrorString(error));
    return exit_skipped;
  }
  require(error);
  std::size_t free = 0;
  std::size_t total = 0;
  require(cudaMemGetInfo(&free, &total));
  // Half of what is free is in use at most, with the block that goes beyond: no request may fail.
  asked.run.live_bytes = free / 2 / asked.run.threads;
  asked.run.largest = std::min(asked.run.largest, asked.run.live_bytes / 4);

  pagesift::pool_options options;
  options.backing = asked.plain ? pagesift::backing::plain : pagesift::backing::automatic;
  pagesift::pool_options limited = options;
  limited.limit_bytes = asked.limit;
  gpu_machine machine;
  pagesift::cuda_pool pool{options};
  pagesift::cuda_pool second{limited};
  stress::result r;
  stress::run<gpu_machine>{machine, {&pool, &second}, asked.run}(r);
  std::printf("%s\n", stress::summary(asked.run, r, asked.json).c_str());
  return r.mismatches == 0 && r.failures == 0 ? 0 : 1;
}
