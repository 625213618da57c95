// Pools as memory resources of cuda::mr, for CUB's environments, cuda::buffer and other libraries.
//
// With CCCL before 3.1 (CUDA before 13.1) cuda::mr is there only if the macro
// LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE is defined before the first of CCCL's headers is
// read, best for the whole program. Hence this header is not part of pagesift.hpp.
#pragma once

#include <cuda/version>

#if CCCL_VERSION < 2008000
#error "pagesift/adapters/memory_resource.hpp needs CCCL 2.8 or later, as in CUDA 12.9."
#elif CCCL_VERSION < 3001000 && !defined(LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE)
#error \
    "pagesift/adapters/memory_resource.hpp: CCCL before 3.1 has cuda::mr only where \
LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE is defined before its first header is read: define it for the whole program."
#endif

#include <pagesift/core/error.hpp>
#include <pagesift/core/size_class.hpp>
#include <pagesift/pool/cuda_pool.hpp>
#include <pagesift/pool/host_pool.hpp>
#include <pagesift/pool/pool_handle.hpp>
#include <pagesift/pool/return_memory.hpp>

#include <cuda/memory_resource>
#include <cuda/stream_ref>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace pagesift {

/// Whether a pool's memory is ordered by CUDA's streams and accessible from the device; it is
/// accessible from the host otherwise.
template <typename Pool>
inline constexpr bool is_of_device_v = std::is_same_v<typename Pool::stream_type, cudaStream_t>;

template <typename Pool>
using if_of_device = std::enable_if_t<is_of_device_v<Pool>, int>;
template <typename Pool>
using if_not_of_device = std::enable_if_t<!is_of_device_v<Pool>, int>;

/// What cuda::mr asks of a resource, in the words of each of its versions: `allocate_sync`, and
/// `allocate` with a stream, from CCCL 3.1 on; `allocate` without one, and `allocate_async`,
/// before. All is const, for CUB passes over a resource whose calls are not and allocates
/// elsewhere. A pool of host memory knows no streams and lacks their forms. `Resource` has a const
/// member `pool()`.
///
/// Sizes and alignments are in bytes; alignments below 256 count as 256. Requests throw what the
/// pool's `allocate` and `allocate_sync` throw; nothing that gives memory back throws. The pool's
/// rules on streams and threads hold; memory that was allocated by one form may be given back by
/// another.
template <typename Resource, typename Pool>
class resource_forms {
 public:
  using pool_type = Pool;

#if CCCL_VERSION >= 3002000
  /// The properties that wrappers that forget the type still answer for.
  using default_queries = cuda::mr::properties_list<std::conditional_t<
      is_of_device_v<Pool>, cuda::mr::device_accessible, cuda::mr::host_accessible>>;
#endif

  /// Memory that is good on every stream, for callers that know none.
  [[nodiscard]] void* allocate_sync(std::size_t bytes,
                                    std::size_t alignment = default_alignment) const {
    return pool().allocate_sync(bytes, alignment);
  }
  /// Memory that may still be in use on any stream: waits for the device as cudaFree does.
  void deallocate_sync(void* p, std::size_t bytes, std::size_t = default_alignment) const noexcept {
    return_memory(self(), p, bytes);
  }

  /// In the order of `stream`, as the pool's own.
  template <typename P = Pool, if_of_device<P> = 0>
  [[nodiscard]] void* allocate(cuda::stream_ref stream, std::size_t bytes,
                               std::size_t alignment = default_alignment) const {
    return pool().allocate(bytes, alignment, stream.get());
  }
  template <typename P = Pool, if_of_device<P> = 0>
  void deallocate(cuda::stream_ref stream, void* p, std::size_t bytes,
                  std::size_t = default_alignment) const noexcept {
    return_memory(self(), p, bytes, stream.get());
  }

  /// `allocate_sync`, as CCCL 2.8 and 3.0 call it.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) const {
    return allocate_sync(bytes, alignment);
  }
  void deallocate(void* p, std::size_t bytes, std::size_t alignment) const noexcept {
    deallocate_sync(p, bytes, alignment);
  }

  /// `allocate` with a stream, as CCCL 2.8 and 3.0 call it.
  template <typename P = Pool, if_of_device<P> = 0>
  [[nodiscard]] void* allocate_async(std::size_t bytes, std::size_t alignment,
                                     cuda::stream_ref stream) const {
    return allocate(stream, bytes, alignment);
  }
  template <typename P = Pool, if_of_device<P> = 0>
  void deallocate_async(void* p, std::size_t bytes, std::size_t alignment,
                        cuda::stream_ref stream) const noexcept {
    deallocate(stream, p, bytes, alignment);
  }

#if CCCL_VERSION >= 3001000
  /// The resource itself, so that it serves as an environment of CUB's. For pools of device memory.
  template <typename P = Pool, if_of_device<P> = 0>
  [[nodiscard]] const Resource& query(const cuda::mr::get_memory_resource_t&) const noexcept {
    return self();
  }
#endif

  template <typename P = Pool, if_of_device<P> = 0>
  friend constexpr void get_property(const Resource&, cuda::mr::device_accessible) noexcept {}
  template <typename P = Pool, if_not_of_device<P> = 0>
  friend constexpr void get_property(const Resource&, cuda::mr::host_accessible) noexcept {}

 private:
  [[nodiscard]] const Resource& self() const noexcept {
    return static_cast<const Resource&>(*this);
  }
  [[nodiscard]] Pool& pool() const { return self().pool(); }
};

/// A pool as a resource, as large as a pointer. It does not own the pool, which must outlive it,
/// its copies and the memory they have handed out. A default-made one names the default pool of the
/// device that is current at each call. Equal are resources of one pool.
template <typename Pool>
class memory_resource : public resource_forms<memory_resource<Pool>, Pool> {
 public:
  memory_resource() noexcept = default;
  memory_resource(Pool& pool) noexcept : handle_{pool} {}  // implicit, as a reference to it is
  memory_resource(pool_handle<Pool> handle) noexcept : handle_{handle} {}

  /// The pool named. \throws what making a default pool throws
  [[nodiscard]] Pool& pool() const { return handle_.pool(); }

  friend bool operator==(const memory_resource& a, const memory_resource& b) noexcept {
    return a.handle_ == b.handle_;
  }
  friend bool operator!=(const memory_resource& a, const memory_resource& b) noexcept {
    return !(a == b);
  }

 private:
  pool_handle<Pool> handle_;
};

/// A pool as a resource that owns it together with its copies: the pool ends with the last of them.
/// For any_resource, cuda::buffer and others that keep a copy for as long as they have memory of
/// it. Equal are resources of one pool.
template <typename Pool>
class shared_memory_resource : public resource_forms<shared_memory_resource<Pool>, Pool> {
 public:
  /// Makes a pool. \throws what the pool's constructor throws, std::bad_alloc
  explicit shared_memory_resource(pool_options options = {})
      : pool_{std::make_shared<Pool>(std::move(options))} {}
  /// Owns `pool` too. \throws invalid_argument where it is null
  explicit shared_memory_resource(std::shared_ptr<Pool> pool) : pool_{std::move(pool)} {
    if (pool_ == nullptr) {
      throw invalid_argument{"shared_memory_resource was given no pool: the pointer is null"};
    }
  }

  [[nodiscard]] Pool& pool() const noexcept { return *pool_; }

  friend bool operator==(const shared_memory_resource& a,
                         const shared_memory_resource& b) noexcept {
    return a.pool_ == b.pool_;
  }
  friend bool operator!=(const shared_memory_resource& a,
                         const shared_memory_resource& b) noexcept {
    return !(a == b);
  }

 private:
  std::shared_ptr<Pool> pool_;
};

/// Whether cuda::mr takes `Resource` with that property for requests with a stream, or without one,
/// under the concepts' names of this CCCL: `resource` and `synchronous_resource`, before 3.1
/// `async_resource` and `resource`.
#if CCCL_VERSION >= 3001000
template <typename Resource, typename Property>
inline constexpr bool is_resource_v = cuda::mr::resource_with<Resource, Property>;
template <typename Resource, typename Property>
inline constexpr bool is_synchronous_resource_v =
    cuda::mr::synchronous_resource_with<Resource, Property>;
#else
template <typename Resource, typename Property>
inline constexpr bool is_resource_v = cuda::mr::async_resource_with<Resource, Property>;
template <typename Resource, typename Property>
inline constexpr bool is_synchronous_resource_v = cuda::mr::resource_with<Resource, Property>;
#endif

static_assert(is_resource_v<memory_resource<cuda_pool>, cuda::mr::device_accessible>);
static_assert(is_resource_v<const memory_resource<cuda_pool>, cuda::mr::device_accessible>);
static_assert(is_resource_v<shared_memory_resource<cuda_pool>, cuda::mr::device_accessible>);
static_assert(is_synchronous_resource_v<memory_resource<cuda_pool>, cuda::mr::device_accessible>);
static_assert(is_synchronous_resource_v<memory_resource<host_pool>, cuda::mr::host_accessible>);
static_assert(
    is_synchronous_resource_v<shared_memory_resource<host_pool>, cuda::mr::host_accessible>);
static_assert(!is_resource_v<memory_resource<cuda_pool>, cuda::mr::host_accessible>);
static_assert(!is_resource_v<memory_resource<host_pool>, cuda::mr::host_accessible>);
static_assert(sizeof(memory_resource<cuda_pool>) == sizeof(void*));

}  // namespace pagesift
