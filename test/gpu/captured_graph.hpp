// A graph that was captured on a device, ready to be launched.
#pragma once

#include "device_work.hpp"

#include <pagesift/pool/cuda_pool.hpp>

#include <cstddef>

namespace gpu {

inline void begin_capture(cudaStream_t stream,
                          cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  require(cudaStreamBeginCapture(stream, mode));
}

/// Ends the capture on `captured`, which must be valid. Graph and executable go with this object.
class captured_graph {
 public:
  explicit captured_graph(cudaStream_t captured) {
    REQUIRE(cudaStreamEndCapture(captured, &graph_) == cudaSuccess);
    require(cudaGraphInstantiate(&replay_, graph_, 0));
  }
  captured_graph(const captured_graph&) = delete;
  captured_graph& operator=(const captured_graph&) = delete;
  ~captured_graph() {
    (void)cudaGraphExecDestroy(replay_);
    (void)cudaGraphDestroy(graph_);
  }

  void launch(cudaStream_t stream) const { require(cudaGraphLaunch(replay_, stream)); }
  [[nodiscard]] cudaGraph_t graph() const { return graph_; }
  [[nodiscard]] cudaGraphExec_t executable() const { return replay_; }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t replay_ = nullptr;
};

/// Later work of `to` comes after what was submitted to `from` so far.
inline void order(cudaStream_t from, cudaStream_t to) {
  cudaEvent_t event = nullptr;
  require(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  require(cudaEventRecord(event, from));
  require(cudaStreamWaitEvent(to, event, 0));
  require(cudaEventDestroy(event));
}

/// Whether the pool soon has back all that it kept for graphs: CUDA says so a little after the end.
inline bool all_came_back(const pagesift::cuda_pool& pool) {
  require(cudaDeviceSynchronize());
  for (int tries = 0; tries < 1'000'000; ++tries) {
    if (pool.stats().captured == 0) {
      return true;
    }
  }
  return false;
}

/// A block that is filled and freed at once: eager work that would disturb a graph whose memory it
/// got.
inline void eager_turn(pagesift::cuda_pool& pool, std::size_t bytes, unsigned value,
                       cudaStream_t stream) {
  void* const p = pool.allocate(bytes, stream);
  fill(p, bytes, value, stream);
  check(p, bytes, value, stream);
  pool.deallocate(p, bytes, stream);
}

}  // namespace gpu
