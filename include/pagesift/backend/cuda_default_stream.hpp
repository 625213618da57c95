// What a null stream handle means in this translation unit.
//
// With CUDA_API_PER_THREAD_DEFAULT_STREAM defined (nvcc --default-stream per-thread) null names
// another stream in every thread, else the one legacy default stream. Objects built either way may
// be linked together, so whatever depends on the setting lives in an inline namespace named after
// it: the linker never takes the one for the other.
#pragma once

#include <cuda.h>

#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
#define PAGESIFT_CUDA_NAMESPACE per_thread_default_stream
#else
#define PAGESIFT_CUDA_NAMESPACE legacy_default_stream
#endif

namespace pagesift {
inline namespace PAGESIFT_CUDA_NAMESPACE {

/// `stream`, with the default stream's own handle in place of null.
[[nodiscard]] inline CUstream explicit_stream(CUstream stream) noexcept {
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
  return stream == nullptr ? CU_STREAM_PER_THREAD : stream;
#else
  return stream == nullptr ? CU_STREAM_LEGACY : stream;
#endif
}

}  // namespace PAGESIFT_CUDA_NAMESPACE
}  // namespace pagesift
