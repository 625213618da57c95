// The calls that code compiled for per-thread default streams makes.
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include "runtime_stream.cpp"
