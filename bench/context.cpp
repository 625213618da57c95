#include "bench_commit.hpp"
#include "context.hpp"
#include "machine.hpp"

#include <benchmark/benchmark.h>
#include <thrust/version.h>

#include <cstdlib>
#include <string>

#ifdef PAGESIFT_DEVICE_IS_CUDA
#include <cuda_runtime.h>

#include <dlfcn.h>
#endif

namespace bench {
namespace {

/// The commit that was built, or the one that PAGESIFT_COMMIT in the environment names.
std::string commit() {
  const char* const named = std::getenv("PAGESIFT_COMMIT");
  return named != nullptr && *named != '\0' ? named : PAGESIFT_BENCH_COMMIT;
}

std::string command_line(int argc, char** argv) {
  std::string line;
  for (int i = 0; i < argc; ++i) {
    line += (i == 0 ? "" : " ") + std::string{argv[i]};
  }
  return line;
}

std::string thrust_version() {
  return std::to_string(THRUST_MAJOR_VERSION) + '.' + std::to_string(THRUST_MINOR_VERSION) + '.' +
         std::to_string(THRUST_SUBMINOR_VERSION);
}

#ifdef PAGESIFT_DEVICE_IS_CUDA

std::string gpu_name() {
  cudaDeviceProp properties{};
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaGetDeviceProperties(&properties, device) != cudaSuccess) {
    (void)cudaGetLastError();
    return "unknown";
  }
  return properties.name;
}

/// Only NVML knows the driver's own version. It comes with the driver, and so may be missing here:
/// hence by name, and with its functions' types written out.
std::string driver_version() {
  void* const nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (nvml == nullptr) {
    return "unknown";
  }
  const auto init = reinterpret_cast<int (*)()>(dlsym(nvml, "nvmlInit_v2"));
  const auto ask =
      reinterpret_cast<int (*)(char*, unsigned)>(dlsym(nvml, "nvmlSystemGetDriverVersion"));
  char version[80] = "";
  const bool known =
      init != nullptr && ask != nullptr && init() == 0 && ask(version, sizeof version) == 0;
  return known ? version : "unknown";
}

std::string cuda_version() {
  return std::to_string(CUDART_VERSION / 1000) + '.' + std::to_string(CUDART_VERSION % 1000 / 10);
}

#endif

}  // namespace

std::string missing_device() {
#ifdef PAGESIFT_DEVICE_IS_CUDA
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    return cudaGetErrorString(error);
  }
  return count == 0 ? "no CUDA device was found" : "";
#else
  return "";
#endif
}

void add_context(int argc, char** argv) {
#ifdef PAGESIFT_DEVICE_IS_CUDA
  benchmark::AddCustomContext("gpu", gpu_name());
  benchmark::AddCustomContext("driver", driver_version());
  benchmark::AddCustomContext("cuda", cuda_version());
#ifndef PAGESIFT_BENCH_HAS_RMM
  benchmark::AddCustomContext("left out: rmm", "it was not found when this program was built");
#endif
#else
  benchmark::AddCustomContext("gpu", "none (Thrust on OpenMP, host memory)");
#endif
  benchmark::AddCustomContext("thrust", thrust_version());
  benchmark::AddCustomContext("commit", commit());
  benchmark::AddCustomContext("command", command_line(argc, argv));
}

}  // namespace bench
