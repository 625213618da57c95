// What the fake knows: devices, threads, streams, events, allocations. Internal to the fake.
#pragma once

#include "fake_cuda.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

// The context is a type of the driver's that only its address is known of.
struct CUctx_st {
  int device = 0;
  int broken = 0;  ///< the error that every call returns, once a kernel has gone wrong
  unsigned long long id = 1;
  bool destroyed = false;  ///< by a reset, and the runtime was not used since
};

namespace fake_cuda {

inline constexpr int max_devices = 8;

/// Its destruction is the end: whoever made it is told.
struct user_object {
  user_object(CUhostFn how, void* what) : destroy{how}, data{what} {}
  user_object(const user_object&) = delete;
  user_object& operator=(const user_object&) = delete;
  ~user_object() { destroy(data); }

  CUhostFn destroy;
  void* data;
};

struct edge {
  explicit edge(CUgraphNode node) : from{node} {}

  CUgraphNode from;
  bool programmatic = false;  ///< its end may begin before `from` has ended
};

/// What a graph consists of. Kept by the capture, the graph, its executables and pending launches.
struct graph_content {
  std::map<CUgraphNode, std::vector<edge>> nodes;
  std::vector<std::shared_ptr<user_object>> objects;
};

struct capture {
  CUstreamCaptureMode mode;
  std::thread::id thread;
  std::uint64_t origin;  ///< id of the stream it began on
  std::uint64_t id;
  CUgraph graph;
  std::shared_ptr<graph_content> content;
  bool valid = true;
};

/// A point in a stream's work: complete once that many items are.
struct position {
  std::uint64_t stream = 0;
  std::uint64_t index = 0;
};

struct item {
  std::vector<position> after;
  std::shared_ptr<void> keeps;  ///< until it has run
};

struct stream {
  std::uint64_t id = 0;
  int device = 0;
  bool blocking = true;  ///< synchronises with the legacy default stream
  bool destroyed = false;
  std::uint64_t completed = 0;
  std::deque<item> pending;
  std::shared_ptr<capture> capturing;
  std::vector<edge> dependencies;        ///< of the next node it captures
  std::vector<CUgraphNode> shown_nodes;  ///< those, as the last call showed them
  std::vector<CUgraphEdgeData> shown_edges;

  [[nodiscard]] position tail() const { return {id, completed + pending.size()}; }
};

struct event {
  int device = 0;
  position recorded;                  ///< index 0: never recorded
  std::shared_ptr<capture> captured;  ///< it was last recorded in this capture
  std::vector<edge> dependencies;     ///< of the stream it was recorded on
};

struct allocation {
  int device = 0;
  std::size_t bytes = 0;
  void* mapped = nullptr;
  std::size_t mapped_bytes = 0;
};

/// Addresses without memory.
struct reservation {
  std::size_t bytes = 0;
  void* mapped = nullptr;
  std::size_t mapped_bytes = 0;
};

/// Physical memory: a file of the host's memory, which lives until nobody has a handle or a
/// mapping.
struct physical {
  int device = 0;
  std::size_t bytes = 0;
  int file = -1;
  std::size_t mappings = 0;
  bool released = false;
};

struct mapping {
  std::uintptr_t end = 0;
  CUmemGenericAllocationHandle piece = 0;
  std::set<int> access;  ///< devices that may use it
};

struct fault {
  int code;
  std::size_t skip;
  std::size_t times;
};

struct world {
  std::mutex mutex;
  CUctx_st contexts[max_devices];
  int devices = 2;
  std::size_t bytes_each = 0;
  std::size_t used[max_devices] = {};
  std::size_t alignment = 512;
  int runtime_refusal = 0;

  std::map<std::uint64_t, stream> streams;
  std::map<CUstream, std::uint64_t> handles;
  std::vector<CUstream> recycled;
  std::set<CUstream> reset_handles;  ///< of streams that a reset has destroyed
  std::uintptr_t last_handle = 0x1000;
  std::uint64_t legacy[max_devices] = {};
  std::uint64_t last_id = 0;
  std::map<CUevent, event> events;
  std::map<CUgraph, std::shared_ptr<graph_content>> graphs;
  std::map<CUgraphExec, std::shared_ptr<graph_content>> executables;
  std::map<CUuserObject, std::shared_ptr<user_object>> user_objects;  ///< that nothing keeps yet
  std::uintptr_t last_graph = 0x10;  ///< graphs, nodes, executables and objects share numbers
  std::map<void*, allocation> allocations;
  std::map<std::uintptr_t, reservation> reservations;
  std::map<CUmemGenericAllocationHandle, physical> pieces;
  std::map<std::uintptr_t, mapping> mappings;
  CUmemGenericAllocationHandle last_piece = 0;
  unsigned long long last_context = 1;
  std::map<int, int> attributes;  ///< those set by the test
  std::size_t granularity = std::size_t{2} << 20;
  bool peer_access = true;

  std::vector<call> log;
  std::map<std::string, std::size_t> counts;
  std::map<std::string, fault> faults;
  std::map<std::string, std::function<void()>> hooks;
  std::set<std::string> removed;
  std::vector<std::string> misuse;
};

/// What CUDA keeps per thread.
struct thread_state {
  std::vector<CUcontext> contexts;  ///< the stack, the current one last
  cudaError_t last_error = cudaSuccess;
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::map<int, std::uint64_t> default_streams;  ///< by device: ids of its per-thread streams
  unsigned era = 0;                              ///< the `reset` it was made after
};

world& the_world();
thread_state& this_thread();
CUcontext current_context();

// --- timeline.cpp: all with the world locked ---
stream& new_stream(int device, bool blocking);
/// The stream meant by `handle`, or null: a destroyed one, or a default stream without a context.
stream* find_stream(CUstream handle);
/// Adds an item that waits for `after` and for what the legacy default stream's rules say.
position submit(stream& s, std::vector<position> after = {}, std::shared_ptr<void> keeps = {});
/// Positions in a stream that is destroyed and has no work left are complete.
void forget_if_gone(std::uint64_t id);
bool is_complete(position p);
void complete_until(position p);
void complete_device(int device);

// --- capture.cpp: all with the world locked ---
/// Success, or 900 after ending the captures that forbid this thread a potentially unsafe call.
CUresult potentially_unsafe();
/// Success, or 900 after ending every capture of the device: no mode allows the call.
CUresult conflicts_with_capture(int device);
/// Success, or 906 where a stream that synchronises with the legacy default stream is capturing.
CUresult implicit_dependency(const stream& s);
/// Success where the host may wait for `s`, or the captures that forbid it end.
CUresult wait_beside_captures(const stream& s);

// --- calls.cpp ---
/// Hook, log, faults and broken contexts, then `body` with the world locked.
CUresult driver_call(const call& c, const std::function<CUresult()>& body);
/// The same for calls that work whatever has become of the context.
CUresult contextless_call(const call& c, const std::function<CUresult()>& body);
/// A call of the runtime: binds a context where the thread has none, keeps the last error.
cudaError_t runtime_call(const call& c, const std::function<CUresult()>& body);
cudaError_t contextless_runtime_call(const call& c, const std::function<CUresult()>& body);

// --- streams.cpp, events.cpp, memory.cpp: what the driver's and the runtime's calls share ---
CUresult create_stream(CUstream* handle, unsigned flags);
CUresult destroy_stream(CUstream handle);
CUresult stream_id(CUstream handle, unsigned long long* id);
CUresult query_stream(CUstream handle);
CUresult synchronize_stream(CUstream handle);
CUresult synchronize_context();
/// One item of work: a kernel, a copy.
CUresult launch(CUstream handle);

CUresult is_capturing(CUstream handle, CUstreamCaptureStatus* status);
CUresult begin_capture(CUstream handle, CUstreamCaptureMode mode);
CUresult end_capture(CUstream handle, CUgraph* graph);
CUresult exchange_capture_mode(CUstreamCaptureMode* mode);

// --- graphs.cpp: with the world locked ---
/// Appends a node to the capture that `s` takes part in.
void capture_node(stream& s);
/// Later nodes of `s` come after `dependencies` too.
void depend(stream& s, const std::vector<edge>& dependencies);
CUresult capture_info(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                      CUgraph* graph, const CUgraphNode** nodes, const CUgraphEdgeData** edges,
                      std::size_t* count);
CUresult node_dependencies(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* edges,
                           std::size_t* count);
CUresult create_user_object(CUuserObject* object, void* data, CUhostFn destroy);
CUresult release_user_object(CUuserObject object);
CUresult retain_user_object(CUgraph graph, CUuserObject object, unsigned flags);
CUresult instantiate(CUgraphExec* executable, CUgraph graph);
CUresult launch_graph(CUgraphExec executable, CUstream handle);
CUresult destroy_graph(CUgraph graph);
CUresult destroy_executable(CUgraphExec executable);

CUresult create_event(CUevent* e);
CUresult destroy_event(CUevent e);
CUresult record(CUevent e, CUstream handle);
CUresult wait(CUstream handle, CUevent e);
CUresult query(CUevent e);
CUresult synchronize(CUevent e);

CUresult allocate(std::size_t bytes, void** p);
CUresult release(void* p);
CUresult memory_info(std::size_t* free_bytes, std::size_t* total_bytes);

// --- mapping.cpp: with the world locked ---
CUresult reserve(CUdeviceptr* p, std::size_t bytes, std::size_t alignment);
CUresult unreserve(CUdeviceptr p, std::size_t bytes);
CUresult create(CUmemGenericAllocationHandle* h, std::size_t bytes, int device);
CUresult destroy(CUmemGenericAllocationHandle h);
CUresult map(CUdeviceptr p, std::size_t bytes, CUmemGenericAllocationHandle h);
CUresult unmap(CUdeviceptr p, std::size_t bytes);
CUresult give_access(CUdeviceptr p, std::size_t bytes, int device);
/// Takes everything away without asking.
void unmap_the_world();
/// The same of one device; addresses stay reserved.
void unmap_device(int device);

// --- resetting.cpp: with the world locked ---
CUresult reset_device(int device);
/// Makes a context that a reset has destroyed anew, as any use of the runtime does.
void revive(CUcontext context);

/// Addresses of the driver's functions for virtual memory.
const std::map<std::string, void*>& mapping_functions();

/// Address of the driver's function `name` as it was in CUDA `version`, or null.
void* entry_point(const std::string& name, unsigned version);

}  // namespace fake_cuda
