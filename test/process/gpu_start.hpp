// Ends a program as skipped where there is no device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

inline void skip_without_device() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver) {
    std::printf("skipped: no CUDA device (%s)\n", cudaGetErrorString(error));
    std::exit(77);
  }
}
