#include "device_work.hpp"

#include <cstdlib>

namespace {

constexpr unsigned threads_per_block = 256;
constexpr unsigned most_blocks = 1024;
constexpr unsigned long long nanoseconds_of_delay = 50'000'000;

unsigned* mismatch_flag = nullptr;  // memory that host and device share

__device__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void fill_kernel(unsigned* words, std::size_t count, unsigned value) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    words[i] = value;
  }
}

__global__ void check_kernel(const unsigned* words, std::size_t count, unsigned value,
                             unsigned* wrong) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    if (words[i] != value) {
      *wrong = 1;
    }
  }
}

__global__ void delay_kernel() {
  const unsigned long long end = nanoseconds() + nanoseconds_of_delay;
  while (nanoseconds() < end) {
  }
}

__global__ void trap_kernel() { __trap(); }

__global__ void gate_kernel(volatile unsigned* words, unsigned ticket,
                            unsigned long long nanoseconds_of_patience) {
  const unsigned long long end = nanoseconds() + nanoseconds_of_patience;
  while (words[0] < ticket) {
    if (nanoseconds() > end) {
      words[1] = 1;
      return;
    }
  }
}

template <typename Kernel>
void load(Kernel* kernel) {
  cudaFuncAttributes attributes;
  gpu::require(cudaFuncGetAttributes(&attributes, kernel));
}

unsigned* shared_words(std::size_t count) {
  void* words = nullptr;
  gpu::require(cudaHostAlloc(&words, count * sizeof(unsigned), cudaHostAllocPortable));
  for (std::size_t i = 0; i < count; ++i) {
    static_cast<unsigned*>(words)[i] = 0;
  }
  return static_cast<unsigned*>(words);
}

unsigned long long patience() {
  return gpu::one_kernel_at_a_time() ? 100'000'000 : 20'000'000'000;  // nanoseconds
}

unsigned blocks_for(std::size_t words) {
  const std::size_t blocks = (words + threads_per_block - 1) / threads_per_block;
  return blocks < most_blocks ? static_cast<unsigned>(blocks) : most_blocks;
}

}  // namespace

namespace gpu {

bool one_kernel_at_a_time() { return std::getenv("PAGESIFT_ONE_KERNEL_AT_A_TIME") != nullptr; }

void prepare() {
  load(fill_kernel);
  load(check_kernel);
  load(delay_kernel);
  load(trap_kernel);
  load(gate_kernel);
  if (mismatch_flag == nullptr) {
    mismatch_flag = shared_words(1);
  }
  *mismatch_flag = 0;
  // A tool that changes kernels does so at their first launch.
  fill_kernel<<<1, 1>>>(nullptr, 0, 0);
  check_kernel<<<1, 1>>>(nullptr, 0, 0, mismatch_flag);
  gate_kernel<<<1, 1>>>(mismatch_flag, 0, 0);
  require(cudaDeviceSynchronize());
}

void fill(void* p, std::size_t bytes, unsigned value, cudaStream_t stream) {
  const std::size_t words = bytes / sizeof(unsigned);
  fill_kernel<<<blocks_for(words), threads_per_block, 0, stream>>>(static_cast<unsigned*>(p), words,
                                                                   value);
  require(cudaPeekAtLastError());
}

void check(const void* p, std::size_t bytes, unsigned value, cudaStream_t stream) {
  const std::size_t words = bytes / sizeof(unsigned);
  check_kernel<<<blocks_for(words), threads_per_block, 0, stream>>>(static_cast<const unsigned*>(p),
                                                                    words, value, mismatch_flag);
  require(cudaPeekAtLastError());
}

bool mismatch() { return *static_cast<volatile unsigned*>(mismatch_flag) != 0; }

void delay(cudaStream_t stream) {
  delay_kernel<<<1, 1, 0, stream>>>();
  require(cudaPeekAtLastError());
}

void trap(cudaStream_t stream) {
  trap_kernel<<<1, 1, 0, stream>>>();
  require(cudaPeekAtLastError());
}

gate::gate() : words_{shared_words(2)} {}

gate::~gate() {
  // The words stay: a kernel may still be reading them, and freeing them would wait for it.
  open();
}

void gate::close(cudaStream_t stream) {
  gate_kernel<<<1, 1, 0, stream>>>(words_, ++closed_, patience());
  require(cudaPeekAtLastError());
}

void gate::open() { words_[0] = closed_; }

bool gate::expired() const { return words_[1] != 0 && !one_kernel_at_a_time(); }

}  // namespace gpu
