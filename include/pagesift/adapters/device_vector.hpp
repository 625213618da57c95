// Thrust's vector, with memory from a pool.
#pragma once

#include <pagesift/adapters/allocator.hpp>

#include <thrust/device_vector.h>

namespace pagesift {
inline namespace PAGESIFT_SYSTEM_NAMESPACE {

/// `thrust::device_vector` whose memory comes from a pool: by default the default pool of the
/// current device, else the pool and stream of the `allocator<T>` it is made with.
template <typename T>
using device_vector = thrust::device_vector<T, allocator<T>>;

}  // namespace PAGESIFT_SYSTEM_NAMESPACE
}  // namespace pagesift
