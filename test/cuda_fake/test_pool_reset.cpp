// cudaDeviceReset while a pool lives: no old pointer is handed out, and nothing that the reset has
// destroyed is named to the driver.
#include "pool_scene.hpp"

#include <pagesift/adapters/device_buffer.hpp>
#include <pagesift/adapters/wait_for_stream.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

/// Asked by LeakSanitizer, where the program has it.
// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming): its name for it
extern "C" const char* __lsan_default_options();
extern "C" const char* __lsan_default_options() { return "detect_leaks=0"; }
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)

namespace {

using pagesift::cuda_pool;
using pagesift::pool_options;
using pagesift::reset_error;

/// Calls that do no harm after a reset: an old stream says that it is gone.
bool only_asks() {
  const auto calls = fake_cuda::log();
  return std::all_of(calls.begin(), calls.end(), [](const fake_cuda::call& c) {
    return c.name == "cuCtxGetId" || c.name == "cuStreamIsCapturing";
  });
}

/// A new context is made by the first use of the runtime.
void reset_device(bool use_runtime = true) {
  REQUIRE(cudaDeviceReset() == cudaSuccess);
  if (use_runtime) {
    REQUIRE(cudaFree(nullptr) == cudaSuccess);
  }
  fake_cuda::clear_log();
}

/// Ways to ask for memory and to give it back.
struct by_stream {
  cuda_pool* pool;
  cudaStream_t stream;
  [[nodiscard]] void* allocate(std::size_t bytes) const { return pool->allocate(bytes, stream); }
  void deallocate(void* p, std::size_t bytes) const { pool->deallocate(p, bytes, stream); }
};
struct by_sync {
  cuda_pool* pool;
  [[nodiscard]] void* allocate(std::size_t bytes) const { return pool->allocate_sync(bytes); }
  void deallocate(void* p, std::size_t bytes) const { pool->deallocate_sync(p, bytes); }
};

/// Leaves a block idle, resets, and asks for it again. `way_of(scene)` says how.
template <typename Way>
void check_refused(const pool_options& options, Way way_of) {
  for (const bool use_runtime : {false, true}) {
    CAPTURE(use_runtime);
    pool_scene scene{pagesift::gibibyte, options};
    const auto way = way_of(scene);
    for (int i = 0; i < 2; ++i) {
      way.deallocate(way.allocate(4096), 4096);
    }
    void* const kept = way.allocate(4096);
    way.deallocate(way.allocate(4096), 4096);
    reset_device(use_runtime);
    CHECK_THROWS_AS((void)way.allocate(4096), reset_error);
    CHECK(scene.pool.found_reset());
    way.deallocate(kept, 4096);
    CHECK_THROWS_AS((void)way.allocate(4096), reset_error);
    CHECK(only_asks());
    CHECK(fake_cuda::misuse().empty());
  }
}

pool_options with(pagesift::checks checks) {
  pool_options options;
  options.checks = checks;
  return options;
}

pool_options plain() {
  pool_options options;
  options.backing = pagesift::backing::plain;
  return options;
}

}  // namespace

TEST_CASE("after a reset a request throws reset_error on every kind of stream") {
  for (const auto checks :
       {pagesift::checks::standard, pagesift::checks::trusted, pagesift::checks::full}) {
    CAPTURE(static_cast<int>(checks));
    const pool_options options = with(checks);
    check_refused(options, [](pool_scene& s) { return by_stream{&s.pool, nullptr}; });
    check_refused(options, [](pool_scene& s) { return by_stream{&s.pool, s.first}; });
    check_refused(options, [](pool_scene& s) { return by_stream{&s.pool, cudaStreamPerThread}; });
    check_refused(options, [](pool_scene& s) { return by_sync{&s.pool}; });
  }
}

TEST_CASE("after a reset a request through a bound stream throws reset_error") {
  const pool_options options = with(pagesift::checks::standard);
  check_refused(options, [](pool_scene& s) { return s.pool.on(nullptr); });
  check_refused(options, [](pool_scene& s) { return s.pool.on(s.first); });
}

TEST_CASE("a pool of plain memory notices a reset as well") {
  check_refused(plain(), [](pool_scene& s) { return by_stream{&s.pool, nullptr}; });
  check_refused(plain(), [](pool_scene& s) { return by_stream{&s.pool, s.first}; });
}

TEST_CASE("a stream made after the reset gets no old pointer by the handle of an old one") {
  pool_scene scene;
  scene.pool.deallocate(scene.pool.allocate(4096, scene.first), 4096, scene.first);
  scene.pool.deallocate(scene.pool.allocate(4096, scene.second), 4096, scene.second);
  reset_device();
  const cudaStream_t young = new_stream();
  REQUIRE((young == scene.first || young == scene.second));
  CHECK_THROWS_AS((void)scene.pool.allocate(4096, young), reset_error);
}

TEST_CASE("frees after a reset make no call but to ask, also those that would record an event") {
  for (const bool noticed : {false, true}) {
    CAPTURE(noticed);
    pool_scene scene{pagesift::gibibyte, eager_seals()};
    void* const seen = scene.pool.allocate(4096, scene.second);
    void* const p = scene.pool.allocate(4096, scene.first);
    void* const q = scene.pool.allocate(4096, nullptr);
    void* const shared = scene.pool.allocate(4096, scene.first);
    scene.pool.record_use(shared, 4096, scene.second);
    reset_device();
    if (noticed) {
      CHECK_THROWS_AS((void)scene.pool.stats(), reset_error);
    }
    scene.pool.deallocate(p, 4096, scene.first);
    scene.pool.deallocate(q, 4096, scene.first);
    scene.pool.deallocate(shared, 4096, scene.first);
    scene.pool.deallocate_sync(seen, 4096);
    CHECK(only_asks());
    CHECK(fake_cuda::misuse().empty());
  }
}

TEST_CASE("after a reset trim, end_batch and retire do nothing; stats, on and record_use throw") {
  using act = void (*)(pool_scene&, void*);
  const act silent[] = {[](pool_scene& s, void*) { s.pool.trim(); },
                        [](pool_scene& s, void*) { s.pool.end_batch(); },
                        [](pool_scene& s, void*) { s.pool.retire(s.first); },
                        [](pool_scene& s, void*) { s.pool.reset_peaks(); }};
  const act throwing[] = {[](pool_scene& s, void*) { (void)s.pool.stats(); },
                          [](pool_scene& s, void*) { (void)s.pool.on(s.first); },
                          [](pool_scene& s, void* p) { s.pool.record_use(p, 4096, s.second); }};
  const auto after_reset = [](auto&& check) {
    pool_scene scene;
    void* const kept = scene.pool.allocate(4096, scene.first);
    scene.pool.deallocate(scene.pool.allocate(mebibyte, scene.first), mebibyte, scene.first);
    reset_device();
    check(scene, kept);
    CHECK(only_asks());
    CHECK(fake_cuda::misuse().empty());
  };
  for (const act a : silent) {
    after_reset([a](pool_scene& s, void* p) { CHECK_NOTHROW(a(s, p)); });
  }
  for (const act a : throwing) {
    after_reset([a](pool_scene& s, void* p) { CHECK_THROWS_AS(a(s, p), reset_error); });
  }
}

TEST_CASE("the destructor leaves what a reset has destroyed alone, its fence's memory too") {
  for (const bool mapped : {false, true}) {
    for (const bool use_runtime : {false, true}) {
      CAPTURE(use_runtime);
      std::optional<pool_scene> scene;
      scene.emplace(pagesift::gibibyte, mapped ? eager_seals() : plain());
      (void)scene->pool.allocate(4096, scene->first);
      for (const cudaStream_t s : {scene->first, scene->second, cudaStream_t{nullptr}}) {
        scene->pool.deallocate(scene->pool.allocate(mebibyte, s), mebibyte, s);
      }
      reset_device(use_runtime);
      scene.reset();
      CHECK(only_asks());
      CHECK(fake_cuda::misuse().empty());
    }
  }
}

TEST_CASE(
    "a pool that remembers a graph ends after a reset without a call; the graph may end later") {
  std::optional<pool_scene> scene;
  scene.emplace();
  REQUIRE(cudaStreamBeginCapture(scene->first, cudaStreamCaptureModeGlobal) == cudaSuccess);
  void* const p = scene->pool.allocate(4096, scene->first);
  scene->pool.deallocate(p, 4096, scene->first);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(scene->first, &graph) == cudaSuccess);
  reset_device();
  CHECK_THROWS_AS((void)scene->pool.allocate(4096, scene->first), reset_error);
  scene.reset();
  CHECK(only_asks());
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(fake_cuda::misuse().empty());
}

TEST_CASE("a pool whose device was reset gives nothing to another that is short") {
  pool_scene old{64 * mebibyte};
  old.pool.deallocate(old.pool.allocate(40 * mebibyte, nullptr), 40 * mebibyte, nullptr);
  reset_device();
  cuda_pool young;
  (void)young.allocate(40 * mebibyte, nullptr);
  CHECK_THROWS_AS((void)young.allocate(40 * mebibyte, nullptr), pagesift::out_of_memory);
  CHECK(old.pool.found_reset());
  CHECK(fake_cuda::misuse().empty());
}

TEST_CASE("after a reset a buffer says so, may be moved and destroyed, and names nothing old") {
  pool_scene scene;
  const std::vector<int> values{1, 2, 3};
  std::vector<int> read(3);
  {
    pagesift::device_buffer<int> buffer{3, scene.pool, scene.first};
    buffer.scatter(values);
    reset_device();
    CHECK_THROWS_AS(buffer.scatter(values), reset_error);
    CHECK_THROWS_AS(buffer.gather(read), reset_error);
    CHECK_THROWS_AS((pagesift::device_buffer<int>{3, scene.pool, scene.first}), reset_error);
    pagesift::device_buffer<int> moved{std::move(buffer)};
    buffer = std::move(moved);
    buffer = pagesift::device_buffer<int>{0, scene.pool};
  }
  CHECK(only_asks());
}

TEST_CASE("a new pool works after a reset, whether or not the runtime was used since") {
  for (const bool use_runtime : {false, true}) {
    CAPTURE(use_runtime);
    pool_scene old;
    reset_device(use_runtime);
    REQUIRE(cudaSetDevice(1) == cudaSuccess);
    pool_options options;
    options.device = 0;
    cuda_pool young{pagesift::cuda_backend::open(0), options};
    int device = -1;
    CHECK(cudaGetDevice(&device) == cudaSuccess);
    CHECK(device == 1);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    void* const p = young.allocate(4096, nullptr);
    young.deallocate(p, 4096, nullptr);
    CHECK(young.allocate(4096, nullptr) == p);
    young.deallocate(p, 4096, nullptr);
  }
}

TEST_CASE("a reset of another device is nothing to a pool") {
  pool_scene scene;
  void* const p = scene.pool.allocate(4096, nullptr);
  scene.pool.deallocate(p, 4096, nullptr);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  reset_device();
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  CHECK(scene.pool.allocate(4096, nullptr) == p);
  scene.pool.deallocate(p, 4096, nullptr);
}

TEST_CASE("a failing context that was not reset is no reset") {
  pool_scene scene;
  fake_cuda::fail("cuCtxGetId", cudaErrorIllegalAddress, 1, 100);
  CHECK_NOTHROW(scene.pool.deallocate(scene.pool.allocate(4096, nullptr), 4096, nullptr));
  CHECK_FALSE(scene.pool.found_reset());
}

TEST_CASE("waiting for a stream after a reset fails and names nothing old") {
  pool_scene scene;
  void* const p = scene.pool.allocate(4096, scene.first);
  reset_device();
  CHECK_THROWS_AS(pagesift::wait_for_stream(scene.pool, p, 4096, scene.first),
                  pagesift::backend_error);
  CHECK(only_asks());
  CHECK(fake_cuda::misuse().empty());
}

TEST_CASE(
    "the request that finds the default pool's device reset throws, the next has a new pool") {
  for (const bool use_runtime : {false, true}) {
    CAPTURE(use_runtime);
    fake_cuda::reset();
    cuda_pool& old = cuda_pool::default_pool(0);
    if (!use_runtime) {  // the table is the process's: the machine is another by now
      CHECK_FALSE(old.found_reset());
    }
    void* const p = old.allocate(4096, nullptr);
    old.deallocate(p, 4096, nullptr);
    reset_device(use_runtime);
    CHECK(&cuda_pool::default_pool() == &old);
    CHECK_THROWS_AS((void)cuda_pool::default_pool().allocate(4096, nullptr), reset_error);
    cuda_pool& young = cuda_pool::default_pool();
    CHECK(&young != &old);
    CHECK(&cuda_pool::default_pool(0) == &young);
    void* const q = young.allocate(4096, nullptr);
    young.deallocate(q, 4096, nullptr);
    CHECK_THROWS_AS((void)old.allocate(4096, nullptr), reset_error);
    REQUIRE(cudaDeviceReset() == cudaSuccess);  // so that the table's pool makes way for others
    CHECK_THROWS_AS((void)young.stats(), reset_error);
  }
}

TEST_CASE("blocks that a reset has destroyed are no leaks of a pool that ends") {
  int reports = 0;
  pool_options options = with(pagesift::checks::full);
  options.on_misuse = [&](const pagesift::misuse_report&) { ++reports; };
  std::optional<pool_scene> scene;
  scene.emplace(pagesift::gibibyte, options);
  (void)scene->pool.allocate(4096, scene->first);
  reset_device();
  scene.reset();
  CHECK(reports == 0);
  CHECK(only_asks());
}
