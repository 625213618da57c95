# Enables the CUDA language where a working nvcc is found; pagesift_has_nvcc says whether.

set(pagesift_has_nvcc FALSE)
if(PAGESIFT_USE_NVCC AND TARGET pagesift::cuda)
  if(NOT CMAKE_CUDA_COMPILER)
    unset(CMAKE_CUDA_COMPILER CACHE)  # an earlier search that found nothing is no answer for ever
  endif()
  if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND CUDAToolkit_NVCC_EXECUTABLE)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
  endif()
  # Every GPU from Turing on; a preset or a person who knows the GPU names one and builds faster.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90)
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    set(pagesift_has_nvcc TRUE)
  endif()
endif()
