// The backend conformance suite on a real device.
#include "../backend/contents_conformance.hpp"
#include "../backend/virtual_memory_conformance.hpp"
#include "device_work.hpp"

#include <pagesift/backend/cuda.hpp>

namespace {

class device_fixture {
 public:
  using backend_type = pagesift::cuda_backend;

  device_fixture() : backend_{(gpu::prepare(), backend_type::open(0))} {}
  ~device_fixture() {
    CHECK_FALSE(gate_.expired());
    CHECK(cudaPeekAtLastError() == cudaSuccess);
  }
  device_fixture(const device_fixture&) = delete;
  device_fixture& operator=(const device_fixture&) = delete;

  backend_type& backend() { return backend_; }

  cudaStream_t make_stream() {
    cudaStream_t stream = nullptr;
    gpu::require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
  }
  void drop_stream(cudaStream_t stream) { CHECK(cudaStreamDestroy(stream) == cudaSuccess); }

  void block(cudaStream_t stream) { gate_.close(stream); }
  void unblock() { gate_.open(); }

 private:
  backend_type backend_;
  gpu::gate gate_;
};

}  // namespace

TYPE_TO_STRING(device_fixture);
PAGESIFT_BACKEND_CONFORMANCE(device_fixture);
PAGESIFT_CONTENTS_CONFORMANCE(device_fixture);
PAGESIFT_STREAMS_CONFORMANCE(device_fixture);
PAGESIFT_BLOCKING_CONFORMANCE(device_fixture);
PAGESIFT_VIRTUAL_MEMORY_CONFORMANCE(device_fixture);
