// CUB's two-phase calls with temporary storage from a pool, in one line. Nothing of CUB is needed
// to compile this: any call of that shape is served.
#pragma once

#include <pagesift/adapters/system.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace pagesift {
namespace two_phase {

/// Temporary storage that goes back to its pool with the scope, however that is left.
template <typename Pool>
class storage {
 public:
  using stream_type = typename Pool::stream_type;

  storage(Pool& pool, std::size_t bytes, stream_type stream)
      : pool_{pool}, bytes_{bytes}, stream_{stream}, data_{pool.allocate(bytes, stream)} {}
  ~storage() { pool_.deallocate(data_, bytes_, stream_); }
  storage(const storage&) = delete;
  storage& operator=(const storage&) = delete;

  [[nodiscard]] void* data() const noexcept { return data_; }

 private:
  Pool& pool_;
  std::size_t bytes_;
  stream_type stream_;
  void* data_;
};

/// Whether `call(temp, bytes)` with `void* temp` and `std::size_t& bytes` gives a status, a value
/// that can be compared with its zero.
template <typename Call, typename = void>
inline constexpr bool is_call = false;

template <typename Call>
inline constexpr bool is_call<
    Call, std::void_t<decltype(std::declval<std::invoke_result_t<Call&, void*, std::size_t&>>() ==
                               std::invoke_result_t<Call&, void*, std::size_t&>{})>> = true;

}  // namespace two_phase

/// Runs one of CUB's two-phase algorithms: asks `call` for the size of its temporary storage,
/// takes it from `pool` in the order of `stream`, and lets `call` do the work on `stream`:
/// ```
/// pagesift::temp_storage(pool, stream, [&](void* temp, std::size_t& bytes) {
///   return cub::DeviceReduce::Sum(temp, bytes, in, out, count, stream);
/// });
/// ```
/// Gives `call`'s status back unchanged; one that is not zero in the first phase ends it there.
/// The memory goes back to the pool when the second phase has returned or thrown; work it left on
/// `stream` may still use it. The second phase never gets null, not even for 0 bytes.
/// \throws what the pool's `allocate` and `call` throw.
template <typename Pool, typename Call>
[[nodiscard]] auto temp_storage(Pool& pool, typename Pool::stream_type stream, Call&& call) {
  if constexpr (two_phase::is_call<Call>) {
    std::size_t bytes = 0;
    auto status = call(static_cast<void*>(nullptr), bytes);
    if (!(status == decltype(status){})) {
      return status;
    }
    const two_phase::storage<Pool> temp{pool, bytes, stream};
    status = call(temp.data(), bytes);
    return status;
  } else {
    static_assert(two_phase::is_call<Call>,
                  "pagesift::temp_storage: the call must take (void* temp, std::size_t& bytes) and "
                  "return a status such as cudaError_t");
  }
}

inline namespace PAGESIFT_SYSTEM_NAMESPACE {

/// The same with the default pool of the current device.
template <typename Call>
[[nodiscard]] auto temp_storage(stream on, Call&& call) {
  return temp_storage(device_pool::default_pool(), on, std::forward<Call>(call));
}

}  // namespace PAGESIFT_SYSTEM_NAMESPACE
}  // namespace pagesift
