// The simulated device as a backend: for tests of what uses a backend, without a GPU.
#pragma once

#include <pagesift/backend/backend.hpp>
#include <pagesift/backend/memory_place.hpp>
#include <pagesift/backend/simulated_device.hpp>
#include <pagesift/backend/simulated_mapper.hpp>
#include <pagesift/backend/stream_capture.hpp>
#include <pagesift/backend/virtual_memory.hpp>
#include <pagesift/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace pagesift {

/// An event of the simulated device.
struct simulated_event {
  std::uint64_t number = 0;
};

/// Names one simulated device, which must outlive it. Copies name the same device.
class simulated_backend : public simulated_mapper {
 public:
  using stream_type = simulated_stream;
  using event_type = simulated_event;
  using announcer_type = simulated_announcer<simulated_device>;
  using graph_type = simulation::graph_content*;
  using node_type = simulated_node;

  static constexpr const char* memory_name = "simulated memory";

  explicit simulated_backend(simulated_device& device) noexcept : simulated_mapper{device} {}

  /// The process's shared simulated device.
  /// \param device 0, or -1 for the current one; there is no other.
  /// \throws invalid_argument for any other device.
  [[nodiscard]] static simulated_backend open(int device) {
    if (device != -1 && device != 0) {
      throw invalid_argument{"the simulated backend has device 0 only, got " +
                             std::to_string(device)};
    }
    return simulated_backend{simulated_device::shared()};
  }

  /// What pools on the same device compete for.
  [[nodiscard]] memory_place place() const noexcept {
    return {"simulated", reinterpret_cast<std::uintptr_t>(&device())};
  }

  [[nodiscard]] static constexpr int current_device() noexcept { return 0; }

  status acquire(std::size_t bytes, void*& p) noexcept {
    return call(simulated_call::acquire, [&](simulated_device& device, lock&) {
      if (breaks_capture(device)) {
        return failure("acquire", simulated_code::capture_forbids);
      }
      if (bytes == 0) {
        return failure("acquire", simulated_code::invalid_value);
      }
      if (bytes > device.free_bytes()) {
        return shortage("acquire");
      }
      void* const piece = device.space_.take(bytes, next_skew(device));
      if (piece == nullptr) {
        return shortage("acquire");
      }
      p = piece;
      return status{};
    });
  }

  status release(void* p, std::size_t bytes) noexcept {
    return call(simulated_call::release, [&](simulated_device& device, lock&) {
      if (breaks_capture(device)) {
        return failure("release", simulated_code::capture_forbids);
      }
      device.check_graphs("released", p, bytes);
      if (!device.judge_.released(p, bytes, device.streams_.host())) {
        return failure("release", simulated_code::invalid_value);
      }
      device.space_.give_back(p);
      device.contents_.clear({p, bytes});
      return status{};
    });
  }

  [[nodiscard]] memory_info memory() const noexcept {
    memory_info info;
    const status ending = call(simulated_call::memory, [&](simulated_device& device, lock&) {
      info = {device.free_bytes(), device.options_.budget_bytes};
      return status{};
    });
    return ending.ok() ? info : memory_info{};
  }

  [[nodiscard]] stream_state inspect(stream_type s) const noexcept {
    stream_state state;
    state.per_thread = s == simulated_per_thread_stream;
    state.result = call(simulated_call::inspect, [&](simulated_device& device, lock&) {
      simulation::stream* const stream = device.checked("inspect", s);
      if (stream == nullptr) {
        return failure("inspect", simulated_code::dead_handle);
      }
      state.capturing = device.captures_.capturing(*stream);
      state.id = state.capturing ? 0 : stream->id;
      return status{};
    });
    return state;
  }

  [[nodiscard]] bool get_id_unless_capturing(stream_type s, stream_id& id) const noexcept {
    const stream_state state = inspect(s);
    id = state.id;
    return state.result.ok() && !state.capturing;
  }
  [[nodiscard]] bool is_not_capturing(stream_type s) const noexcept {
    const stream_state state = inspect(s);
    return state.result.ok() && !state.capturing;
  }

  status create_event(event_type& e) noexcept {
    return call(simulated_call::create_event, [&](simulated_device& device, lock&) {
      e.number = ++device.events_made_;
      device.events_.emplace(e.number, nullptr);
      return status{};
    });
  }

  status destroy_event(event_type e) noexcept {
    return call(simulated_call::destroy_event, [&](simulated_device& device, lock&) {
      if (moment_of(device, "destroy_event", e) == nullptr) {
        return failure("destroy_event", simulated_code::dead_handle);
      }
      device.events_.erase(e.number);
      return status{};
    });
  }

  /// On a capturing stream the event becomes part of the capture and never completes.
  status record(event_type e, stream_type s) noexcept {
    return call(simulated_call::record, [&](simulated_device& device, lock&) {
      simulation::moment_ptr* const recorded = moment_of(device, "record", e);
      simulation::stream* const stream = device.checked("record", s);
      if (recorded == nullptr || stream == nullptr) {
        return failure("record", simulated_code::dead_handle);
      }
      if (device.captures_.capturing(*stream)) {
        *recorded = std::make_shared<simulation::moment>();
        (*recorded)->captured = true;
      } else {
        *recorded = device.submit_record(*stream);
      }
      return status{};
    });
  }

  /// An event that was never recorded is complete.
  status query(event_type e) noexcept {
    return call(simulated_call::query, [&](simulated_device& device, lock&) {
      const status legal = may_ask("query", device, e);
      if (!legal.ok()) {
        return legal;
      }
      if (device.options_.prompt) {
        device.work_.run_all();
      }
      const simulation::moment_ptr recorded = device.events_[e.number];
      if (recorded == nullptr) {
        return status{};
      }
      if (!recorded->reached) {
        return status{outcome::not_ready, simulated_code::not_ready, "query"};
      }
      device.streams_.host_sees(recorded->clock);
      return status{};
    });
  }

  status synchronize(event_type e) noexcept {
    return call(simulated_call::synchronize, [&](simulated_device& device, lock& held) {
      const status legal = may_ask("synchronize", device, e);
      if (!legal.ok()) {
        return legal;
      }
      const simulation::moment_ptr recorded = device.events_[e.number];
      if (recorded != nullptr && !device.wait_for(held, *recorded)) {
        return failure("synchronize", simulated_code::deadlock);
      }
      return status{};
    });
  }

  /// Refers to the latest record at the time of the call. A capturing stream may not wait for
  /// what is outside its capture: that breaks it.
  status wait(stream_type s, event_type e) noexcept {
    return call(simulated_call::wait, [&](simulated_device& device, lock&) {
      simulation::moment_ptr* const awaited = moment_of(device, "wait", e);
      simulation::stream* const stream = device.checked("wait", s);
      if (awaited == nullptr || stream == nullptr) {
        return failure("wait", simulated_code::dead_handle);
      }
      if (device.captures_.capturing(*stream)) {
        device.captures_.break_one(*stream);
        return failure("wait", simulated_code::capture_isolation);
      }
      if (*awaited == nullptr) {
        return status{};
      }
      if ((*awaited)->captured) {
        device.judge_.report("wait pulled a stream into a capture");
        return failure("wait", simulated_code::captured_event);
      }
      device.submit_wait(*stream, *awaited);
      return status{};
    });
  }

  status fence() noexcept {
    return call(simulated_call::fence, [&](simulated_device& device, lock& held) {
      return device.wait_for_all(held) ? status{} : failure("fence", simulated_code::deadlock);
    });
  }

  [[nodiscard]] capture_state<graph_type, node_type> look_at_capture(stream_type s) const noexcept {
    capture_state<graph_type, node_type> seen;
    seen.result = call(simulated_call::look_at_capture, [&](simulated_device& device, lock&) {
      simulation::stream* const stream = device.checked("look_at_capture", s);
      if (stream == nullptr) {
        return failure("look_at_capture", simulated_code::dead_handle);
      }
      if (const simulation::capture_member* part = device.captures_.member(*stream)) {
        seen.capture = part->running->number;
        seen.active = part->running->valid;
        seen.graph = part->running->graph.get();
        seen.position = position_of(part->position);
      }
      return status{};
    });
    return seen;
  }

  status nodes_before(node_type n, capture_position<node_type>& before) const noexcept {
    return call(simulated_call::nodes_before, [&](simulated_device& device, lock&) {
      const simulation::graph_content::node* const node = device.graphs_.find(n.number);
      if (node == nullptr) {
        device.judge_.report("nodes_before named a node that does not exist");
        return failure("nodes_before", simulated_code::dead_handle);
      }
      before = position_of(node->before);
      return status{};
    });
  }

  /// The host waits a little for word of graphs that are over.
  void rest() const noexcept { device().rest(); }

  status watch_graph(graph_type graph, graph_over over, void* data) const noexcept {
    const status result = call(simulated_call::watch_graph, [&](simulated_device& device, lock&) {
      simulation::graph_content* const watched = device.graphs_.living(graph);
      if (watched == nullptr) {
        device.judge_.report("watch_graph named a graph that is over");
        return failure("watch_graph", simulated_code::dead_handle);
      }
      watched->watchers.push_back({over, data});
      return status{};
    });
    if (!result.ok()) {
      over(data);
    }
    return result;
  }

  [[nodiscard]] std::string describe(int code) const { return describe_simulated(code); }

  // For those who look for mistakes (see memory_contents.hpp). The judge sees to it that they come
  // after all that was done to the bytes before.

  status fill(void* p, unsigned char byte, std::size_t bytes, stream_type s) noexcept {
    return call(simulated_call::fill, [&](simulated_device& device, lock&) {
      simulation::stream* const stream = looking("fill", device, p, bytes, s);
      if (stream == nullptr) {
        return failure("fill", simulated_code::capture_forbids);
      }
      device.note_use(*stream, p, bytes);
      device.work_.submit(*stream, {nullptr, nullptr});
      device.contents_.fill({p, bytes}, byte);
      return status{};
    });
  }

  /// The host waits for the stream's work.
  status copy_to_host(void* to, const void* p, std::size_t bytes, stream_type s) noexcept {
    return call(simulated_call::copy_to_host, [&](simulated_device& device, lock& held) {
      simulation::stream* const stream = looking("copy_to_host", device, p, bytes, s);
      if (stream == nullptr) {
        return failure("copy_to_host", simulated_code::capture_forbids);
      }
      device.note_use(*stream, p, bytes);
      if (!device.wait_for(held, *device.submit_record(*stream))) {
        return failure("copy_to_host", simulated_code::deadlock);
      }
      device.contents_.read(to, {p, bytes});
      return status{};
    });
  }

 private:
  /// The stream, for work on bytes that come after all that was done to them; nullptr where it is
  /// capturing, or dead.
  [[nodiscard]] static simulation::stream* looking(const char* call, simulated_device& device,
                                                   const void* p, std::size_t bytes,
                                                   stream_type s) {
    simulation::stream* const stream = device.checked(call, s);
    if (stream == nullptr || device.captures_.capturing(*stream)) {
      return nullptr;
    }
    stream->clock.join(device.streams_.host());
    device.judge_.looked_at(call, p, bytes, stream->clock);
    return stream;
  }

  [[nodiscard]] static capture_position<node_type> position_of(
      const std::vector<std::uint64_t>& nodes) {
    capture_position<node_type> position;
    position.known = nodes.size() <= position.max_nodes;
    position.count = std::min(nodes.size(), position.max_nodes);
    std::transform(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(position.count),
                   position.nodes.begin(), [](std::uint64_t n) { return simulated_node{n}; });
    return position;
  }

  [[nodiscard]] static bool breaks_capture(simulated_device& device) {
    return !device.options_.relaxed_sections && device.captures_.unsafe_call();
  }

  /// Where the event keeps its latest record, or nullptr and a violation.
  [[nodiscard]] static simulation::moment_ptr* moment_of(simulated_device& device, const char* call,
                                                         event_type e) {
    const auto found = device.events_.find(e.number);
    if (found == device.events_.end()) {
      device.judge_.report(std::string{call} + " named an event that does not exist");
      return nullptr;
    }
    return &found->second;
  }

  /// Whether the host may ask about the event now: it exists, was not recorded into a capture, and
  /// no capture forbids the question.
  [[nodiscard]] static status may_ask(const char* call, simulated_device& device, event_type e) {
    const simulation::moment_ptr* const recorded = moment_of(device, call, e);
    if (recorded == nullptr) {
      return failure(call, simulated_code::dead_handle);
    }
    if (breaks_capture(device)) {
      return failure(call, simulated_code::capture_forbids);
    }
    if (*recorded != nullptr && (*recorded)->captured) {
      return failure(call, simulated_code::captured_event);
    }
    return {};
  }

  /// How far behind a multiple of 2 MiB the next acquisition starts.
  [[nodiscard]] static std::size_t next_skew(simulated_device& device) {
    return device.options_.page_aligned ? 0 : (1 + device.acquisitions_++ % 100) * 256;
  }
};

static_assert(is_virtual_backend_v<simulated_backend>);
static_assert(is_capturing_backend_v<simulated_backend>);

}  // namespace pagesift
