// A pool used from a stream of a green context, which has some of the device's multiprocessors.
#include "late_write.hpp"
#include "missing.hpp"

#include <vector>

#if CUDART_VERSION >= 12050

using pagesift::cuda_pool;
using pagesift::mebibyte;

namespace {

struct green_functions {
  PFN_cuDeviceGetDevResource_v12040 device_resource = nullptr;
  PFN_cuDevSmResourceSplitByCount_v12040 split = nullptr;
  PFN_cuDevResourceGenerateDesc_v12040 describe = nullptr;
  PFN_cuGreenCtxCreate_v12040 create = nullptr;
  PFN_cuGreenCtxDestroy_v12040 destroy = nullptr;
  PFN_cuGreenCtxStreamCreate_v12050 create_stream = nullptr;
  PFN_cuStreamDestroy_v4000 destroy_stream = nullptr;

  [[nodiscard]] bool find() {
    using pagesift::find_if_there;
    return find_if_there(device_resource, "cuDeviceGetDevResource", 12040) &&
           find_if_there(split, "cuDevSmResourceSplitByCount", 12040) &&
           find_if_there(describe, "cuDevResourceGenerateDesc", 12040) &&
           find_if_there(create, "cuGreenCtxCreate", 12040) &&
           find_if_there(destroy, "cuGreenCtxDestroy", 12040) &&
           find_if_there(create_stream, "cuGreenCtxStreamCreate", 12050) &&
           find_if_there(destroy_stream, "cuStreamDestroy", 4000);
  }
};

/// A stream of a green context of its own. Both go with this object: while a green context exists
/// the device cannot be reset.
class green_stream {
 public:
  green_stream() { works_ = functions_.find() && make(); }
  ~green_stream() {
    if (stream_ != nullptr) {
      (void)functions_.destroy_stream(stream_);
    }
    if (context_ != nullptr) {
      (void)functions_.destroy(context_);
    }
  }
  green_stream(const green_stream&) = delete;
  green_stream& operator=(const green_stream&) = delete;

  [[nodiscard]] bool works() const { return works_; }
  operator cudaStream_t() const { return stream_; }

 private:
  [[nodiscard]] bool make() {
    constexpr unsigned multiprocessors = 8;
    CUdevice device = 0;
    CUdevResource all{};
    CUdevResource some{};
    CUdevResourceDesc description = nullptr;
    unsigned groups = 1;
    return cudaFree(nullptr) == cudaSuccess &&
           pagesift::cuda_driver::get().device_get(&device, 0) == CUDA_SUCCESS &&
           functions_.device_resource(device, &all, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS &&
           functions_.split(&some, &groups, &all, nullptr, 0, multiprocessors) == CUDA_SUCCESS &&
           functions_.describe(&description, &some, 1) == CUDA_SUCCESS &&
           functions_.create(&context_, description, device, CU_GREEN_CTX_DEFAULT_STREAM) ==
               CUDA_SUCCESS &&
           functions_.create_stream(&stream_, context_, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS;
  }

  green_functions functions_;
  CUgreenCtx context_ = nullptr;
  CUstream stream_ = nullptr;
  bool works_ = false;
};

/// A block that is written and freed; its address.
void* turn(cuda_pool& pool, std::size_t bytes, cudaStream_t stream) {
  void* const p = pool.allocate(bytes, stream);
  gpu::fill(p, bytes, gpu::old_pattern, stream);
  pool.deallocate(p, bytes, stream);
  return p;
}

}  // namespace

const char* missing_for_this_program() {
  const green_stream tried;
  (void)cudaGetLastError();
  return tried.works() ? nullptr : "the driver makes no green contexts";
}

TEST_CASE("a green context's stream and an ordinary one pass blocks to each other in order") {
  for (const std::size_t seal_bytes : {std::size_t{1}, 32 * mebibyte}) {
    for (const std::size_t bytes : {std::size_t{256}, mebibyte, 40 * mebibyte}) {
      CAPTURE(seal_bytes);
      CAPTURE(bytes);
      gpu::prepare();
      pagesift::pool_options options;
      options.seal_bytes = seal_bytes;
      cuda_pool pool{options};
      const green_stream green;
      const gpu::stream ordinary;
      gpu::gate gate;
      for (int round = 0; round < 20; ++round) {
        gpu::leave_late_write(pool, bytes, gate, green);
        gpu::write_and_check(pool, bytes, gate, ordinary);
        gpu::leave_late_write(pool, bytes, gate, ordinary);
        gpu::write_and_check(pool, bytes, gate, green);
      }
      CHECK_FALSE(gpu::mismatch());
      CHECK_FALSE(gate.expired());
    }
  }
}

TEST_CASE("a block that must cross to or from a green context's stream waits on the device") {
  for (const bool to_green : {false, true}) {
    CAPTURE(to_green);
    gpu::prepare();
    pagesift::pool_options options = gpu::eager_seals();
    options.limit_bytes = 64 * mebibyte;
    cuda_pool pool{options};
    const green_stream green;
    const gpu::stream ordinary;
    const cudaStream_t from = to_green ? static_cast<cudaStream_t>(ordinary) : green;
    const cudaStream_t to = to_green ? static_cast<cudaStream_t>(green) : ordinary;
    gpu::gate gate;
    turn(pool, 256, to);
    gpu::leave_late_write(pool, 40 * mebibyte, gate, from);
    gpu::write_and_check(pool, 40 * mebibyte, gate, to);
    CHECK_FALSE(gpu::mismatch());
    CHECK_FALSE(gate.expired());
    CHECK(pool.stats().stream_waits >= 1);
  }
}

TEST_CASE("a green context's stream takes its own blocks again at once") {
  gpu::prepare();
  cuda_pool pool;
  const green_stream green;
  const gpu::stream ordinary;
  turn(pool, 256, ordinary);
  for (const std::size_t bytes : {std::size_t{256}, 3 * mebibyte, 20 * mebibyte}) {
    void* const p = turn(pool, bytes, green);
    const pagesift::pool_stats warm = pool.stats();
    for (int i = 0; i < 100; ++i) {
      CHECK(turn(pool, bytes, green) == p);
    }
    CHECK(pool.stats().events_recorded == warm.events_recorded);
    CHECK(pool.stats().backend_allocations == warm.backend_allocations);
  }
  gpu::require(cudaDeviceSynchronize());
}

TEST_CASE("a fence waits for a green context's stream, and trim gives its memory back") {
  gpu::prepare();
  cuda_pool pool;
  const green_stream green;
  gpu::delay(green);
  CHECK(pool.backend().fence().ok());
  CHECK(gpu::idle(green));
  void* const p = pool.allocate(40 * mebibyte, green);
  gpu::delay(green);
  gpu::fill(p, 40 * mebibyte, gpu::old_pattern, green);
  pool.deallocate(p, 40 * mebibyte, green);
  pool.trim();
  CHECK(pool.stats().held == 0);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

TEST_CASE("memory of a green context that is gone is found again without touching it") {
  gpu::prepare();
  pagesift::pool_options options;
  options.limit_bytes = 64 * mebibyte;
  cuda_pool pool{options};
  const gpu::stream ordinary;
  turn(pool, 256, ordinary);
  {
    const green_stream green;
    turn(pool, 40 * mebibyte, green);
    gpu::require(cudaStreamSynchronize(green));
  }
  void* const p = pool.allocate(60 * mebibyte, ordinary);
  gpu::fill(p, 60 * mebibyte, gpu::new_pattern, ordinary);
  gpu::check(p, 60 * mebibyte, gpu::new_pattern, ordinary);
  ordinary.synchronize();
  pool.deallocate(p, 60 * mebibyte, ordinary);
  CHECK_FALSE(gpu::mismatch());
}

TEST_CASE("a checked pool takes a green context's stream for one of its own device") {
  gpu::prepare();
  std::vector<pagesift::misuse> found;
  pagesift::pool_options options;
  options.checks = pagesift::checks::full;
  options.on_misuse = [&](const pagesift::misuse_report& report) { found.push_back(report.kind); };
  cuda_pool pool{options};
  const green_stream green;
  CHECK_FALSE(pool.backend().is_elsewhere(green));
  for (int i = 0; i < 3; ++i) {
    turn(pool, 5000 * sizeof(unsigned), green);
  }
  CHECK(found.empty());
}

#else

const char* missing_for_this_program() { return "this CUDA Toolkit is older than 12.5"; }

TEST_CASE("a green context's stream is used as any other") {}

#endif
