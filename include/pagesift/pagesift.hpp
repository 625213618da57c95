// All of pagesift that this translation unit can use: pools of host memory always, of device memory
// where the CUDA Toolkit's headers are, Thrust policies and vectors where Thrust's headers are.
#pragma once

#include <pagesift/adapters/cub.hpp>
#include <pagesift/adapters/device_buffer.hpp>
#include <pagesift/adapters/shortage.hpp>
#include <pagesift/adapters/system.hpp>
#include <pagesift/pool/host_pool.hpp>

#if PAGESIFT_HAS_THRUST
#include <pagesift/adapters/allocator.hpp>
#include <pagesift/adapters/device_vector.hpp>
#include <pagesift/adapters/policy.hpp>
#endif
