// Stream captures: an optional capability of a backend. What is submitted to a capturing stream
// becomes nodes of a graph instead of work; the graph runs later, any number of times.
#pragma once

#include <pagesift/backend/backend.hpp>
#include <pagesift/core/status.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

namespace pagesift {

/// Where a stream stands in its capture: the nodes that the next node submitted there depends on.
/// None at all means that nothing precedes it.
template <typename Node>
struct capture_position {
  static constexpr std::size_t max_nodes = 32;

  std::array<Node, max_nodes> nodes{};
  std::size_t count = 0;
  bool known = false;  ///< false: the nodes are too many, or do not stand for complete order
};

/// What a backend knows of a capturing stream.
template <typename Graph, typename Node>
struct capture_state {
  status result;              ///< anything but ok: the other members mean nothing
  std::uint64_t capture = 0;  ///< names the capture, over all streams that take part; never repeats
  bool active = false;  ///< false: the stream does not capture, or its capture was invalidated
  Graph graph{};        ///< that the capture fills; valid while it goes on
  capture_position<Node> position;
};

/// Called when a graph can run no more. May come from any thread at any time, as long as the
/// process lasts; makes no call of a backend and takes no lock.
using graph_over = void (*)(void* data);

/// Whether streams of the backend `B` can capture graphs. Required, besides what a backend needs,
/// with `B b; B::stream_type s; B::graph_type g; B::node_type n`, where nodes can be compared by
/// `==` and ordered by `std::less`, and a default-made one is none:
///
/// | expression | result | meaning |
/// |---|---|---|
/// | `b.look_at_capture(s)` | `capture_state` | leaves the capture valid |
/// | `b.nodes_before(n, p)` | `status` | `p.nodes`: nodes that end before `n` begins; see below |
/// | `b.watch_graph(g, over, data)` | `status` | `over(data)` is called once: see below |
///
/// `nodes_before` may leave some out. `watch_graph` is for a graph that a capture fills: `over` is
/// called when the graph, all copies of it and all that was made to launch them are gone and their
/// last launch has ended, or when the capture came to nothing. After a failure it is called, too.
template <typename B, typename = void>
struct is_capturing_backend : std::false_type {};

template <typename B>
struct is_capturing_backend<
    B,
    std::void_t<
        typename B::graph_type, decltype(bool{typename B::node_type{} == typename B::node_type{}}),
        decltype(bool{
            std::less<typename B::node_type>{}(typename B::node_type{}, typename B::node_type{})}),
        decltype(capture_state<typename B::graph_type, typename B::node_type>{
            std::declval<const B&>().look_at_capture(std::declval<typename B::stream_type>())}),
        decltype(status{std::declval<const B&>().nodes_before(
            typename B::node_type{}, std::declval<capture_position<typename B::node_type>&>())}),
        decltype(status{std::declval<const B&>().watch_graph(
            typename B::graph_type{}, graph_over{}, std::declval<void*>())})>> : is_backend<B> {};

template <typename B>
inline constexpr bool is_capturing_backend_v = is_capturing_backend<B>::value;

/// Whether waiting for word of a graph's end is a call of the backend: `b.rest()`, without a
/// failure. Else the thread just lets others run.
template <typename B, typename = void>
struct has_rest : std::false_type {};

template <typename B>
struct has_rest<B, std::void_t<decltype(std::declval<const B&>().rest())>> : std::true_type {};

template <typename B>
inline constexpr bool has_rest_v = has_rest<B>::value;

/// `capture_state` of a backend.
template <typename Backend>
using capture_state_of = capture_state<typename Backend::graph_type, typename Backend::node_type>;

}  // namespace pagesift
