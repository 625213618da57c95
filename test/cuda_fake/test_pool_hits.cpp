// Which functions of the driver a hit calls, for each kind of stream handle.
#include "pool_scene.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

namespace {

using names = std::vector<std::string>;

/// The functions that `act` calls.
template <typename Act>
names calls_of(Act&& act) {
  fake_cuda::clear_log();
  act();
  names called;
  for (const fake_cuda::call& call : fake_cuda::log()) {
    called.push_back(call.name);
  }
  return called;
}

pagesift::pool_options trusted() {
  pagesift::pool_options options;
  options.checks = pagesift::checks::trusted;
  return options;
}

/// What a hit on `stream` calls, and the free of its block.
struct pair_calls {
  names allocate;
  names free;
};

template <typename Allocate, typename Free>
pair_calls calls_of_hit(Allocate allocate, Free free) {
  free(allocate());
  pair_calls calls;
  void* p = nullptr;
  calls.allocate = calls_of([&] { p = allocate(); });
  calls.free = calls_of([&] { free(p); });
  return calls;
}

pair_calls calls_of_hit(pool_scene& scene, cudaStream_t stream) {
  return calls_of_hit([&] { return scene.pool.allocate(4096, stream); },
                      [&](void* p) { scene.pool.deallocate(p, 4096, stream); });
}

pair_calls calls_of_bound_hit(pool_scene& scene, cudaStream_t stream) {
  const auto on = scene.pool.on(stream);
  return calls_of_hit([&] { return on.allocate(4096); }, [&](void* p) { on.deallocate(p, 4096); });
}

const names asks_all{"cuStreamIsCapturing", "cuStreamGetId"};
const names asks_capture{"cuStreamIsCapturing"};
const names asks_reset{"cuCtxGetId"};
const names asks_nothing;

}  // namespace

TEST_CASE("a hit on a created stream asks for its capture and its id, its free for nothing") {
  pool_scene scene;
  const pair_calls calls = calls_of_hit(scene, scene.first);
  CHECK(calls.allocate == asks_all);
  CHECK(calls.free == asks_nothing);
}

TEST_CASE("a hit on the legacy default stream asks for a reset alone, by either of its handles") {
  pool_scene scene;
  for (const cudaStream_t stream : {cudaStream_t{nullptr}, cudaStreamLegacy}) {
    const pair_calls calls = calls_of_hit(scene, stream);
    CHECK(calls.allocate == asks_reset);
    CHECK(calls.free == asks_nothing);
    const pair_calls bound_calls = calls_of_bound_hit(scene, stream);
    CHECK(bound_calls.allocate == asks_reset);
    CHECK(bound_calls.free == asks_nothing);
  }
}

TEST_CASE("both handles of the legacy default stream name one stream") {
  pool_scene scene;
  void* const p = scene.pool.allocate(4096, nullptr);
  scene.pool.deallocate(p, 4096, cudaStreamLegacy);
  void* const q = scene.pool.allocate(4096, nullptr);
  CHECK(q == p);
  scene.pool.deallocate(q, 4096, nullptr);
  CHECK(scene.pool.stats().streams == 1);
}

TEST_CASE("a hit through a bound stream asks for its capture, and its free for nothing") {
  pool_scene scene;
  const pair_calls calls = calls_of_bound_hit(scene, scene.first);
  CHECK(calls.allocate == asks_capture);
  CHECK(calls.free == asks_nothing);
}

TEST_CASE("a trusted pool asks as any, but nothing through a bound stream") {
  pool_scene scene{pagesift::gibibyte, trusted()};
  const pair_calls calls = calls_of_hit(scene, scene.first);
  CHECK(calls.allocate == asks_all);
  CHECK(calls.free == asks_nothing);
  const pair_calls bound_calls = calls_of_bound_hit(scene, scene.second);
  CHECK(bound_calls.allocate == asks_nothing);
  CHECK(bound_calls.free == asks_nothing);
}

TEST_CASE("a hit on the per-thread default stream asks in the pool's context and goes back") {
  pool_scene scene;
  const std::size_t depth = fake_cuda::context_depth();
  const pair_calls calls = calls_of_hit(scene, cudaStreamPerThread);
  const auto count = [](const names& called, const std::string& name) {
    return std::count(called.begin(), called.end(), name);
  };
  CHECK(count(calls.allocate, "cuStreamIsCapturing") == 1);
  CHECK(count(calls.allocate, "cuStreamGetId") == 1);
  CHECK(calls.free == asks_nothing);
  CHECK(fake_cuda::context_depth() == depth);
}

TEST_CASE("the id of a stream is asked for before an event is recorded after a free on it") {
  pool_scene scene{pagesift::gibibyte, eager_seals()};
  void* const seen = scene.pool.allocate(4096, scene.second);
  void* const p = scene.pool.allocate(4096, scene.first);
  const names calls = calls_of([&] { scene.pool.deallocate(p, 4096, scene.first); });
  const auto id = std::find(calls.begin(), calls.end(), "cuStreamGetId");
  const auto record = std::find(calls.begin(), calls.end(), "cuEventRecord");
  CHECK(record != calls.end());
  CHECK(id < record);
  scene.pool.deallocate(seen, 4096, scene.second);
}

TEST_CASE("a block that a dead stream's heir frees by its handle is not handed out early") {
  pool_scene scene{pagesift::gibibyte, eager_seals()};
  void* const seen = scene.pool.allocate(4096, scene.second);
  const cudaStream_t old = new_stream();
  void* const p = scene.pool.allocate(4096, old);
  REQUIRE(cudaStreamDestroy(old) == cudaSuccess);
  const cudaStream_t young = new_stream();
  REQUIRE(young == old);
  submit_work(young);
  scene.pool.deallocate(p, 4096, young);
  void* const q = scene.pool.allocate(4096, scene.second);
  CHECK(q != p);
  fake_cuda::complete(young);
  void* const r = scene.pool.allocate(4096, scene.second);
  CHECK(r == p);  // the event is one of the stream that freed it
  for (void* const block : {seen, q, r}) {
    scene.pool.deallocate(block, 4096, scene.second);
  }
  CHECK(fake_cuda::misuse().empty());
}

TEST_CASE("a bound handle of a capturing stream gets graph memory; such a stream is not bound") {
  pool_scene scene;
  const auto on = scene.pool.on(scene.first);
  on.deallocate(on.allocate(4096), 4096);
  REQUIRE(cudaStreamBeginCapture(scene.first, cudaStreamCaptureModeGlobal) == cudaSuccess);
  on.deallocate(on.allocate(4096), 4096);
  CHECK(scene.pool.stats().captured == 4096);
  CHECK_THROWS_AS((void)scene.pool.on(scene.first), pagesift::capture_error);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(scene.first, &graph) == cudaSuccess);
  on.deallocate(on.allocate(4096), 4096);
}
