// Which memory "device" means in this translation unit. The choice is Thrust's own,
// THRUST_DEVICE_SYSTEM; without Thrust it is CUDA where the Toolkit's headers are, else the host.
//
// Objects built for different systems may be linked together, so whatever depends on the system
// lives in an inline namespace named after it: the linker never takes the one for the other.
#pragma once

// 1 where Thrust's headers are there and its device system can be had, else 0.
#if defined(THRUST_DEVICE_SYSTEM) || \
    (__has_include(<thrust/version.h>) && __has_include(<cuda_runtime_api.h>))
#define PAGESIFT_HAS_THRUST 1
#include <thrust/detail/config.h>
#else
#define PAGESIFT_HAS_THRUST 0
#endif

#if PAGESIFT_HAS_THRUST && THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_OMP
#define PAGESIFT_SYSTEM_NAMESPACE omp_system
#elif PAGESIFT_HAS_THRUST && THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_TBB
#define PAGESIFT_SYSTEM_NAMESPACE tbb_system
#elif PAGESIFT_HAS_THRUST && THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CPP
#define PAGESIFT_SYSTEM_NAMESPACE cpp_system
#elif PAGESIFT_HAS_THRUST || __has_include(<cuda_runtime_api.h>)
#define PAGESIFT_DEVICE_IS_CUDA 1
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
#define PAGESIFT_SYSTEM_NAMESPACE cuda_per_thread_system
#else
#define PAGESIFT_SYSTEM_NAMESPACE cuda_system
#endif
#else
#define PAGESIFT_SYSTEM_NAMESPACE cpp_system
#endif

#if defined(PAGESIFT_DEVICE_IS_CUDA)
#include <pagesift/pool/cuda_pool.hpp>
#else
#include <pagesift/pool/host_pool.hpp>
#endif

namespace pagesift {

/// Names whose meaning depends on the device system.
inline namespace PAGESIFT_SYSTEM_NAMESPACE {

/// The backend of the device system: `cuda_backend`, or `host_backend` for OMP, TBB and CPP.
#if defined(PAGESIFT_DEVICE_IS_CUDA)
using device_backend = cuda_backend;
#else
using device_backend = host_backend;
#endif

/// A pool of the device system's memory.
using device_pool = basic_pool<device_backend>;

/// A stream of the device system: `cudaStream_t`, or `host_stream`, which is empty. A
/// default-made one is the default stream.
using stream = device_backend::stream_type;

}  // namespace PAGESIFT_SYSTEM_NAMESPACE
}  // namespace pagesift
