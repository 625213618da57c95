// Work for a real device: patterns written and checked, gates that hold a stream back.
#pragma once

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <cstddef>

namespace gpu {

inline void require(cudaError_t error) { REQUIRE(error == cudaSuccess); }

/// Loads every kernel and what they report through. First thing in a test: a kernel loaded at its
/// first launch would wait for a closed gate.
void prepare();

/// Writes `value` all over the `bytes` (a multiple of 4) bytes at `p`.
void fill(void* p, std::size_t bytes, unsigned value, cudaStream_t stream);
/// Counts as a mismatch if a word there is not `value`.
void check(const void* p, std::size_t bytes, unsigned value, cudaStream_t stream);
/// Whether a check has found a wrong value since `prepare`. The checks must be complete.
bool mismatch();

/// Keeps the stream busy for 50 ms.
void delay(cudaStream_t stream);
/// Breaks the context.
void trap(cudaStream_t stream);

/// Whether the tests run under a tool that lets no kernel begin before the last one ended, such as
/// compute-sanitizer: PAGESIFT_ONE_KERNEL_AT_A_TIME in the environment says so. A gate then holds
/// back whatever is submitted after it, and nothing can be said about what runs beside it.
bool one_kernel_at_a_time();

/// Holds streams back. A gate that nobody opens opens itself after 20 s and says so, so that a test
/// whose host waits for what is behind it fails, and does not hang.
class gate {
 public:
  gate();
  ~gate();  ///< opens it
  gate(const gate&) = delete;
  gate& operator=(const gate&) = delete;

  /// Later work of the stream waits for `open`.
  void close(cudaStream_t stream);
  void open();
  /// Whether it opened itself.
  bool expired() const;

 private:
  volatile unsigned* words_;  // memory that host and device share: opened so often, expired
  unsigned closed_ = 0;
};

/// A stream that is independent of the legacy default stream.
class stream {
 public:
  stream() { require(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking)); }
  ~stream() { (void)cudaStreamDestroy(handle_); }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  operator cudaStream_t() const { return handle_; }
  void synchronize() const { require(cudaStreamSynchronize(handle_)); }

 private:
  cudaStream_t handle_ = nullptr;
};

/// Whether the stream's work is done. Leaves no last error.
inline bool idle(cudaStream_t stream) {
  const bool done = cudaStreamQuery(stream) == cudaSuccess;
  (void)cudaGetLastError();
  return done;
}

/// Lets the stream's work run for about a millisecond, if nothing holds it back.
inline void give_a_chance(cudaStream_t stream) {
  for (int tries = 0; tries < 1000 && !idle(stream); ++tries) {
  }
}

}  // namespace gpu
