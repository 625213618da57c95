// Which types are resources of cuda::mr, and which are not.
#include <pagesift/adapters/memory_resource.hpp>

#include <type_traits>

namespace {

using device_accessible = cuda::mr::device_accessible;
using host_accessible = cuda::mr::host_accessible;

// Valid: what names a pool or shares one. Const too, as CUB passes it.
using by_name = pagesift::memory_resource<pagesift::cuda_pool>;
using by_share = pagesift::shared_memory_resource<pagesift::cuda_pool>;
static_assert(pagesift::is_resource_v<by_name, device_accessible>);
static_assert(pagesift::is_resource_v<const by_name, device_accessible>);
static_assert(pagesift::is_resource_v<by_share, device_accessible>);
static_assert(pagesift::is_resource_v<const by_share, device_accessible>);
static_assert(std::is_nothrow_move_constructible_v<by_name> && sizeof(by_name) == sizeof(void*));

// Valid without streams: a pool of host memory.
using host_by_name = pagesift::memory_resource<pagesift::host_pool>;
static_assert(pagesift::is_synchronous_resource_v<host_by_name, host_accessible>);

// Invalid: the pool itself, which is neither copied nor compared; and its handle, an allocator.
static_assert(!pagesift::is_synchronous_resource_v<pagesift::cuda_pool, device_accessible>);
static_assert(!pagesift::is_synchronous_resource_v<pagesift::pool_handle<pagesift::cuda_pool>,
                                                   device_accessible>);

// Invalid: memory that the other side does not reach, and host memory in the order of a stream.
static_assert(!pagesift::is_resource_v<by_name, host_accessible>);
static_assert(!pagesift::is_synchronous_resource_v<host_by_name, device_accessible>);
static_assert(!pagesift::is_resource_v<host_by_name, host_accessible>);

}  // namespace
