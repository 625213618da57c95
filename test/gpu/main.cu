// The main function of every test program that needs a device.
#define DOCTEST_CONFIG_IMPLEMENT
#include "missing.hpp"

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>

namespace {

constexpr int exit_skipped = 77;  // what CTest is told to count as skipped

bool lists_tests_only(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--list-test-cases") == 0) {
      return true;
    }
  }
  return false;
}

// No driver and no device are a machine without a GPU; anything else is a GPU that is broken.
bool is_absence(cudaError_t error) {
  return error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver;
}

}  // namespace

__attribute__((weak)) const char* missing_for_this_program() { return nullptr; }

int main(int argc, char** argv) {
  doctest::Context context{argc, argv};
  if (!lists_tests_only(argc, argv)) {
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);
    if (is_absence(error)) {
      std::printf("skipped: no CUDA device (%s)\n", cudaGetErrorString(error));
      return exit_skipped;
    }
    if (error != cudaSuccess) {
      std::printf("the CUDA device cannot be used: %s\n", cudaGetErrorString(error));
      return 1;
    }
    if (const char* const missing = missing_for_this_program()) {
      std::printf("skipped: %s\n", missing);
      return exit_skipped;
    }
  }
  return context.run();
}
