// Thrust captured into a CUDA graph through pagesift, and replayed beside other work of the pool.
#include <pagesift/pagesift.hpp>

#include <thrust/sort.h>
#include <thrust/transform.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

struct square {
  __host__ __device__ int operator()(int x) const { return x * x; }
};

void require(cudaError_t error) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    std::exit(EXIT_FAILURE);
  }
}

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: there is no CUDA device");
    return 77;
  }
  const std::size_t n = 1'000'000;
  cudaStream_t stream = nullptr;
  require(cudaStreamCreate(&stream));
  pagesift::device_pool pool;
  bool right = true;
  {
    pagesift::device_buffer<int> data{n, pool, stream};  // yours: it outlives the graph

    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    const auto policy = pool.policy_nosync(stream);  // the other kind would wait for the stream
    thrust::transform(policy, data.begin(), data.end(), data.begin(), square{});
    thrust::sort(policy, data.begin(), data.end());  // its temporary storage is the graph's
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    require(cudaStreamEndCapture(stream, &graph));
    require(cudaGraphInstantiate(&replay, graph, 0));
    require(cudaGraphDestroy(graph));
    std::printf("kept for the graph: %zu bytes\n", pool.stats().captured);

    std::vector<int> host(n);
    for (int run = 0; run < 10; ++run) {
      std::generate(host.begin(), host.end(), [] { return std::rand() % 1000; });
      data.scatter(host);
      require(cudaGraphLaunch(replay, stream));
      std::vector<int> result(n);
      data.gather(result);
      std::transform(host.begin(), host.end(), host.begin(), square{});
      std::sort(host.begin(), host.end());
      right = right && result == host;
    }
    require(cudaGraphExecDestroy(replay));  // the memory goes back to the pool
  }
  require(cudaStreamDestroy(stream));
  std::puts(right ? "right" : "wrong");
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
