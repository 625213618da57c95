// The backend conformance suite on the CUDA backend over the fake.
#include "../backend/contents_conformance.hpp"
#include "../backend/virtual_memory_conformance.hpp"
#include "fake_cuda.hpp"

#include <pagesift/backend/cuda.hpp>

namespace {

class cuda_fixture {
 public:
  using backend_type = pagesift::cuda_backend;

  cuda_fixture() : backend_{(fake_cuda::reset(), backend_type::open(0))} {}
  ~cuda_fixture() {
    CHECK(fake_cuda::misuse().empty());
    CHECK(fake_cuda::live_pieces() == 0);
    CHECK(fake_cuda::reserved_bytes() == 0);
  }
  cuda_fixture(const cuda_fixture&) = delete;
  cuda_fixture& operator=(const cuda_fixture&) = delete;

  backend_type& backend() { return backend_; }

  cudaStream_t make_stream() {
    cudaStream_t stream = nullptr;
    REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
    return stream;
  }
  void drop_stream(cudaStream_t stream) { CHECK(cudaStreamDestroy(stream) == cudaSuccess); }

  void block(cudaStream_t) {}  // nothing runs there before somebody waits for it
  void unblock() { fake_cuda::complete_all(); }

 private:
  backend_type backend_;
};

}  // namespace

TYPE_TO_STRING(cuda_fixture);
PAGESIFT_BACKEND_CONFORMANCE(cuda_fixture);
PAGESIFT_CONTENTS_CONFORMANCE(cuda_fixture);
PAGESIFT_STREAMS_CONFORMANCE(cuda_fixture);
PAGESIFT_BLOCKING_CONFORMANCE(cuda_fixture);
PAGESIFT_VIRTUAL_MEMORY_CONFORMANCE(cuda_fixture);
