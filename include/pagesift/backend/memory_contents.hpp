// What a backend may have besides, for those who look for mistakes: access to what memory holds,
// where a stream belongs, and a way to tell tools about memory.
#pragma once

#include <pagesift/backend/backend.hpp>
#include <pagesift/core/status.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace pagesift {

/// Whether the host can write patterns into memory of the backend `B` and read them, in the order
/// of a stream. Required, besides what a backend needs:
///
/// | expression | result | meaning |
/// |---|---|---|
/// | `b.fill(p, byte, bytes, s)` | `status` | after the work submitted to `s`; does not wait |
/// | `b.copy_to_host(host, p, bytes, s)` | `status` | the same; waits until it is done |
///
/// Neither touches a stream that is capturing: they fail then.
template <typename B, typename = void>
struct has_contents : std::false_type {};
template <typename B>
struct has_contents<B, std::void_t<decltype(status{std::declval<B&>().fill(
                                       std::declval<void*>(), static_cast<unsigned char>(0),
                                       std::size_t{}, std::declval<typename B::stream_type>())}),
                                   decltype(status{std::declval<B&>().copy_to_host(
                                       std::declval<void*>(), std::declval<const void*>(),
                                       std::size_t{}, std::declval<typename B::stream_type>())})>>
    : std::true_type {};
template <typename B>
inline constexpr bool has_contents_v = has_contents<B>::value;

/// Whether the backend can tell, by `b.is_elsewhere(s)`, that a stream belongs to another device.
template <typename B, typename = void>
struct knows_places : std::false_type {};
template <typename B>
struct knows_places<B, std::void_t<decltype(bool{std::declval<const B&>().is_elsewhere(
                           std::declval<typename B::stream_type>())})>> : std::true_type {};
template <typename B>
inline constexpr bool knows_places_v = knows_places<B>::value;

/// Whether the backend can tell tools about memory: `B::announcer_type a{b}` has, none throwing,
/// `heap(p, bytes)` and `no_heap(p)` for what a pool took and gives back, `region(p, bytes)` and
/// `no_region(p)` for the parts of it that a user has.
template <typename B, typename = void>
struct announces_memory : std::false_type {};
template <typename B>
struct announces_memory<B, std::void_t<typename B::announcer_type>> : std::true_type {};
template <typename B>
inline constexpr bool announces_memory_v = announces_memory<B>::value;

}  // namespace pagesift
