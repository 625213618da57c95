// A CUDA runtime and driver for tests without a GPU, and the means to script it.
//
// Linked in place of cudart it gives host code the calls that pagesift, Thrust and CUB make:
// - Device memory is host memory, zeroed, taken from a budget per device.
// - Kernels do nothing. Work submitted to a stream, an event record included, stays pending until a
//   call waits for it (a synchronize, cudaFree) or the test completes it. Copies move their bytes
//   at once.
// - Virtual memory is the host's too: reserved addresses fault until a piece is mapped there and
//   access given, and a piece keeps what is in it while it is mapped elsewhere.
// - A destroyed stream's handle is the next one given out, its id never is.
// - cudaDeviceReset takes a device's memory, streams and events away. The context keeps its
// address;
//   its id is gone until the runtime is used again, then it is another. What is left of the graphs
//   never ends.
// - The last error, the current device and context, and the rules of stream capture are CUDA's.
//
// Calls of the driver fetched through cudaGetDriverEntryPoint are named as there ("cuEventRecord"),
// calls of the runtime as in the header ("cudaEventRecord"); neither counts as the other.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace fake_cuda {

/// One call, as it was made.
struct call {
  std::string name;
  CUstream stream = nullptr;  ///< the handle passed, for calls that take one
  std::size_t bytes = 0;      ///< for calls that take a size
};

/// A machine as after a reboot: `devices` devices with `bytes_each` bytes, no faults, and for the
/// calling thread no context and no error. Objects made before are gone; pools must be too.
void reset(int devices = 2, std::size_t bytes_each = std::size_t{1} << 30);

// --- what happened -------------------------------------------------------------------------------
std::vector<call> log();
std::size_t count(const std::string& name);
void clear_log();
/// Things a real driver crashes on or leaves undefined, one sentence each. Empty in a sound
/// program.
std::vector<std::string> misuse();

// --- what there is -------------------------------------------------------------------------------
std::size_t used_bytes(int device);
std::size_t live_allocations();
std::size_t live_events();
/// Addresses that are reserved, and pieces of physical memory that are not gone.
std::size_t reserved_bytes();
std::size_t live_pieces();
/// Devices that may use the mapping that begins at `p`; empty where none does.
std::set<int> access_to(const void* p);
/// Contexts on the calling thread's stack.
std::size_t context_depth();

// --- time ----------------------------------------------------------------------------------------
/// Runs all work submitted to `stream` so far, and what it waits for.
void complete(CUstream stream);
void complete_all();
/// What `stream`, which is capturing, captures next depends on the nodes before by programmatic
/// edges: it may begin before they have ended.
void make_programmatic(CUstream stream);
/// Whether `stream` has work pending.
[[nodiscard]] bool pending(CUstream stream);

// --- faults --------------------------------------------------------------------------------------
/// The `nth` call of `name` from now on, and the `times - 1` after it, do nothing but fail.
void fail(const std::string& name, int code, std::size_t nth = 1, std::size_t times = 1);
/// `hook` runs at the start of every call of `name`, with no lock held; empty takes it away.
void on_call(const std::string& name, std::function<void()> hook);
/// From now on calls that need the device's context return `code`, as after a fault in a kernel.
void break_device(int device, int code);
/// Every call of the runtime returns `code`, as without a driver (35) or a device (100).
void refuse_runtime(int code);
/// The driver has no such function.
void remove_entry_point(const std::string& name);
/// Allocations start at a multiple of `bytes` (a power of two, up to 2 MiB) and of nothing larger.
void set_alignment(std::size_t bytes);
/// What the driver says of an attribute of every device; 1 of those never set.
void set_attribute(CUdevice_attribute name, int value);
/// The granularity that the driver recommends for mappings, and needs.
void set_granularity(std::size_t bytes);
/// Whether each device reaches every other's memory.
void set_peer_access(bool reachable);

}  // namespace fake_cuda
