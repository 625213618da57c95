// Captures on a simulated device for tests of a pool.
#pragma once

#include "world.hpp"

using pagesift::simulated_capture_mode;

/// A backend that makes its calls inside sections of relaxed capture mode.
inline simulated_options relaxed(std::size_t budget_bytes = gibibyte) {
  simulated_options options = with_budget(budget_bytes);
  options.relaxed_sections = true;
  return options;
}

/// Lets the pool know that `s` captures, as any request on it does.
inline void make_known(world& w, simulated_stream s) { w.turn(256, s); }

inline pagesift::simulated_event unrelated_event(world& w) {
  pagesift::simulated_event event;
  REQUIRE(w.pool->backend().create_event(event).ok());
  return event;
}

/// The graph that a capture makes when it is ended, ready for launches; gone with this object.
class launched_graph {
 public:
  launched_graph(world& w, simulated_stream captured)
      : world_{w},
        graph_{w.device.capture_graph(captured)},
        replay_{w.device.instantiate(graph_)} {}
  launched_graph(const launched_graph&) = delete;
  launched_graph& operator=(const launched_graph&) = delete;
  ~launched_graph() {
    world_.device.destroy(graph_);
    world_.device.destroy(replay_);
  }

  void launch(simulated_stream s) const { world_.device.launch(replay_, s); }

 private:
  world& world_;
  pagesift::simulated_graph graph_;
  pagesift::simulated_executable replay_;
};
