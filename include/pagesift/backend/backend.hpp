// The backend concept: where memory and ordering come from.
//
// A backend is a copyable handle. Its calls do not throw and may be made from any thread at once;
// they leave the calling thread's current device and CUDA's last-error state as they found them,
// and every stream capture valid.
#pragma once

#include <pagesift/core/error.hpp>
#include <pagesift/core/process_life.hpp>
#include <pagesift/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace pagesift {

/// Names one stream for the life of the program. Values with the two highest bits set are the
/// pool's own (`quiet_stream`, `unordered_stream`, ids of capture arenas). Never repeats, unlike a
/// stream handle: of 200 streams created after another was destroyed, 199 had a handle seen before.
using stream_id = std::uint64_t;

/// What a backend knows about a stream handle.
struct stream_state {
  status result;            ///< anything but ok: the other members mean nothing
  stream_id id = 0;         ///< valid only where `capturing` is false
  bool capturing = false;   ///< the stream is recording a graph; its id must not be asked for
  bool per_thread = false;  ///< the handle names another stream in each thread
};

/// How much memory a backend has, in bytes.
struct memory_info {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};

/// Whether `B` is a backend. Required, with `B b; B::stream_type s; B::event_type e`, where streams
/// can be compared by `==` and a default-made one is the default stream:
///
/// | expression | result | meaning |
/// |---|---|---|
/// | `B::memory_name` | `const char*` | "device memory", "host memory", for messages |
/// | `B::current_device()` | `int` | the calling thread's; may throw |
/// | `B::open(int device)` | `B` | -1: the current device; throws on one that is not there |
/// | `b.acquire(bytes, p)` | `status` | `p`: `bytes` bytes, aligned to 256 or more; or `shortage` |
/// | `b.release(p, bytes)` | `status` | the host has seen the last use of it complete |
/// | `b.memory()` | `memory_info` | |
/// | `b.inspect(s)` | `stream_state` | legal on a capturing stream, leaves its capture valid |
/// | `b.get_id_unless_capturing(s, id)` | `bool` | false: captures, or `inspect` knows why |
/// | `b.is_not_capturing(s)` | `bool` | false: captures, or `inspect` knows why |
/// | `b.create_event(e)` | `status` | until it is recorded it is complete |
/// | `b.destroy_event(e)` | `status` | legal before it is complete |
/// | `b.record(e, s)` | `status` | all work submitted to `s` so far; may be recorded again |
/// | `b.query(e)` | `status` | `ok`: complete; `not_ready`; anything else is not completion |
/// | `b.synchronize(e)` | `status` | the host waits |
/// | `b.wait(s, e)` | `status` | later work on `s` waits, the host does not |
/// | `b.fence()` | `status` | the host waits for all work of the context; or `shortage`, done
/// nothing | | `b.describe(code)` | `std::string` | what the code means |
template <typename B, typename = void>
struct is_backend : std::false_type {};

template <typename B>
struct is_backend<
    B,
    std::void_t<
        typename B::stream_type, typename B::event_type, decltype(std::string{B::memory_name}),
        decltype(int{B::current_device()}), decltype(B{B::open(0)}),
        decltype(status{std::declval<B&>().acquire(std::size_t{}, std::declval<void*&>())}),
        decltype(status{std::declval<B&>().release(std::declval<void*>(), std::size_t{})}),
        decltype(memory_info{std::declval<B&>().memory()}),
        decltype(stream_state{std::declval<B&>().inspect(std::declval<typename B::stream_type>())}),
        decltype(bool{std::declval<B&>().get_id_unless_capturing(
            std::declval<typename B::stream_type>(), std::declval<stream_id&>())}),
        decltype(
            bool{std::declval<B&>().is_not_capturing(std::declval<typename B::stream_type>())}),
        decltype(status{std::declval<B&>().create_event(std::declval<typename B::event_type&>())}),
        decltype(status{std::declval<B&>().destroy_event(std::declval<typename B::event_type>())}),
        decltype(status{std::declval<B&>().record(std::declval<typename B::event_type>(),
                                                  std::declval<typename B::stream_type>())}),
        decltype(status{std::declval<B&>().query(std::declval<typename B::event_type>())}),
        decltype(status{std::declval<B&>().synchronize(std::declval<typename B::event_type>())}),
        decltype(status{std::declval<B&>().wait(std::declval<typename B::stream_type>(),
                                                std::declval<typename B::event_type>())}),
        decltype(status{std::declval<B&>().fence()}),
        decltype(std::string{std::declval<const B&>().describe(0)})>>
    : std::bool_constant<std::is_copy_constructible_v<B>&& noexcept(std::declval<B&>().release(
          std::declval<void*>(), std::size_t{}))&& noexcept(std::declval<B&>().fence())> {};

template <typename B>
inline constexpr bool is_backend_v = is_backend<B>::value;

/// Whether the memory of backend `B` is somebody else's than the process's: then a forked child
/// makes no call of it, nor does a process once its exit has begun. True unless
/// `B::needs_driver` says otherwise.
template <typename B, typename = void>
inline constexpr bool needs_driver_v = true;
template <typename B>
inline constexpr bool needs_driver_v<B, std::void_t<decltype(bool{B::needs_driver})>> =
    B::needs_driver;

/// Whether the memory of backend `B` can be taken away at once, with all streams and events. Such
/// a backend says so by `bool is_reset() const noexcept`: whether that has happened since it was
/// opened. It never changes back; once it has happened `inspect` fails, `get_id_unless_capturing`
/// and `is_not_capturing` are false, and the other calls do nothing but fail.
template <typename B, typename = void>
inline constexpr bool knows_resets_v = false;
template <typename B>
inline constexpr bool
    knows_resets_v<B, std::void_t<decltype(bool{std::declval<const B&>().is_reset()})>> = true;

/// \throws backend_error unless `result` is ok
template <typename Backend>
void require_ok(const Backend& backend, const status& result) {
  if (!result.ok()) {
    process_life::get().rest_while_exiting();  // the driver may have gone amid a call
    throw backend_error{result.code, result.call, backend.describe(result.code)};
  }
}

}  // namespace pagesift
