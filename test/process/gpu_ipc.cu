// Plain memory of a pool shared with another process by cudaIpc, as CUDA-aware MPI does it: the
// program runs itself again, with the handle and the offset of a block, and that run answers.
// What cannot be shared where it comes from cudaMalloc is no fault of the pool: exit status 77.
#include "gpu_start.hpp"

#include <pagesift/pool/cuda_pool.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::size_t block_bytes = 5000;
constexpr int sent = 0x21;
constexpr int answered = 0x43;
constexpr int cannot_open = 3;

std::string to_text(const cudaIpcMemHandle_t& handle) {
  std::string text;
  for (const char c : handle.reserved) {
    char two_digits[3];
    std::snprintf(two_digits, sizeof two_digits, "%02x", static_cast<unsigned char>(c));
    text += two_digits;
  }
  return text;
}

cudaIpcMemHandle_t from_text(const std::string& text) {
  cudaIpcMemHandle_t handle{};
  for (std::size_t i = 0; i < sizeof handle.reserved; ++i) {
    handle.reserved[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return handle;
}

bool holds(const void* device, int byte) {
  std::vector<unsigned char> host(block_bytes);
  if (cudaMemcpy(host.data(), device, block_bytes, cudaMemcpyDeviceToHost) != cudaSuccess) {
    return false;
  }
  return host == std::vector<unsigned char>(block_bytes, static_cast<unsigned char>(byte));
}

/// The other process: looks for what was sent, and answers.
int answer(const std::string& handle, std::size_t offset) {
  void* base = nullptr;
  if (cudaIpcOpenMemHandle(&base, from_text(handle), cudaIpcMemLazyEnablePeerAccess) !=
      cudaSuccess) {
    return cannot_open;
  }
  char* const block = static_cast<char*>(base) + offset;
  const bool right = holds(block, sent) &&
                     cudaMemset(block, answered, block_bytes) == cudaSuccess &&
                     cudaDeviceSynchronize() == cudaSuccess;
  return cudaIpcCloseMemHandle(base) == cudaSuccess && right ? 0 : 1;
}

/// Runs this program as the other process; its exit code.
int ask_other_process(const cudaIpcMemHandle_t& handle, std::size_t offset) {
  const std::string text = to_text(handle);
  const std::string distance = std::to_string(offset);
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "gpu_ipc", text.c_str(), distance.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  const bool ended = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
  return ended ? WEXITSTATUS(status) : -1;
}

/// Shares a block that begins `offset` bytes into an allocation of CUDA's.
int share(void* block, std::size_t offset) {
  cudaIpcMemHandle_t handle{};
  if (cudaMemset(block, sent, block_bytes) != cudaSuccess ||
      cudaDeviceSynchronize() != cudaSuccess ||
      cudaIpcGetMemHandle(&handle, block) != cudaSuccess) {
    return cannot_open;
  }
  const int code = ask_other_process(handle, offset);
  return code == 0 && !holds(block, answered) ? 1 : code;
}

/// How far into its allocation a pointer lies.
std::size_t offset_of(void* p) {
  PFN_cuMemGetAddressRange_v3020 range = nullptr;
  pagesift::find_cuda_function(range, "cuMemGetAddressRange", 3020);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  const auto at = reinterpret_cast<CUdeviceptr>(p);
  pagesift::check_cuda(range(&base, &bytes, at), "cuMemGetAddressRange");
  return static_cast<std::size_t>(at - base);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) {
    return answer(argv[1], std::strtoull(argv[2], nullptr, 10));
  }
  skip_without_device();
  void* plain = nullptr;
  if (cudaMalloc(&plain, pagesift::page_bytes) != cudaSuccess || share(plain, 0) != 0) {
    std::puts("skipped: memory of cudaMalloc cannot be shared here");
    return 77;
  }
  pagesift::pool_options options;
  options.backing = pagesift::backing::plain;
  pagesift::cuda_pool pool{options};
  for (const std::size_t bytes : {block_bytes, 3 * pagesift::mebibyte, 40 * pagesift::mebibyte}) {
    void* const before = pool.allocate(bytes, nullptr);  // so that the next lies farther in
    void* const block = pool.allocate(bytes, nullptr);
    const int code = share(block, offset_of(block));
    pool.deallocate(block, bytes, nullptr);
    pool.deallocate(before, bytes, nullptr);
    if (code != 0) {
      std::fprintf(stderr, "a block of %zu bytes was not shared: %d\n", bytes, code);
      return 1;
    }
  }
  return 0;
}
