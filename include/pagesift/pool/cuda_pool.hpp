// A pool of CUDA device memory.
#pragma once

#include <pagesift/backend/cuda.hpp>
#include <pagesift/pool/pool.hpp>

namespace pagesift {

using cuda_pool = basic_pool<cuda_backend>;

}  // namespace pagesift
