// The test's side of the fake.
#include "world.hpp"

#include <algorithm>
#include <iterator>
#include <sys/mman.h>

namespace fake_cuda {

namespace {

unsigned era = 0;  // guarded by the world's lock

void boot(world& w, int devices, std::size_t bytes_each) {
  w.devices = devices;
  w.bytes_each = bytes_each;
  for (int device = 0; device < max_devices; ++device) {
    w.contexts[device] = CUctx_st{device, 0, 1, false};
    w.legacy[device] = ++w.last_id;
    stream& legacy = w.streams[w.last_id];
    legacy.id = w.last_id;
    legacy.device = device;
  }
}

void shut_down(world& w) {
  for (const auto& entry : w.allocations) {
    munmap(entry.second.mapped, entry.second.mapped_bytes);
  }
  unmap_the_world();
  w.attributes.clear();
  w.granularity = std::size_t{2} << 20;
  w.peer_access = true;
  std::fill(std::begin(w.used), std::end(w.used), 0);
  w.alignment = 512;
  w.runtime_refusal = 0;
  w.streams.clear();
  w.handles.clear();
  w.reset_handles.clear();
  w.events.clear();
  w.graphs.clear();
  w.executables.clear();
  w.user_objects.clear();
  w.allocations.clear();
  w.log.clear();
  w.counts.clear();
  w.faults.clear();
  w.hooks.clear();
  w.removed.clear();
  w.misuse.clear();
}

}  // namespace

world& the_world() {
  // Never destroyed: static pools may outlive everything else.
  static world* w = [] {
    auto* made = new world;
    boot(*made, 2, std::size_t{1} << 30);
    return made;
  }();
  return *w;
}

thread_state& this_thread() {
  thread_local thread_state state;
  if (state.era != era) {
    state = thread_state{};
    state.era = era;
  }
  return state;
}

void reset(int devices, std::size_t bytes_each) {
  world& w = the_world();
  std::lock_guard<std::mutex> lock{w.mutex};
  ++era;
  shut_down(w);
  boot(w, devices, bytes_each);
}

std::vector<call> log() {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  return the_world().log;
}

std::size_t count(const std::string& name) {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  return the_world().counts[name];
}

void clear_log() {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  the_world().log.clear();
  the_world().counts.clear();
}

std::vector<std::string> misuse() {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  return the_world().misuse;
}

std::size_t used_bytes(int device) {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  return the_world().used[device];
}

std::size_t live_allocations() {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  return the_world().allocations.size();
}

std::size_t live_events() {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  return the_world().events.size();
}

std::size_t reserved_bytes() {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  std::size_t bytes = 0;
  for (const auto& entry : the_world().reservations) {
    bytes += entry.second.bytes;
  }
  return bytes;
}

std::size_t live_pieces() {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  return the_world().pieces.size();
}

std::set<int> access_to(const void* p) {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  const auto& mappings = the_world().mappings;
  const auto found = mappings.find(reinterpret_cast<std::uintptr_t>(p));
  return found == mappings.end() ? std::set<int>{} : found->second.access;
}

std::size_t context_depth() {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  return this_thread().contexts.size();
}

void complete(CUstream stream) {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  if (const auto* s = find_stream(stream)) {
    complete_until(s->tail());
  }
}

void complete_all() {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  for (int device = 0; device < max_devices; ++device) {
    complete_device(device);
  }
}

bool pending(CUstream stream) {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  const auto* s = find_stream(stream);
  return s != nullptr && !s->pending.empty();
}

void fail(const std::string& name, int code, std::size_t nth, std::size_t times) {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  the_world().faults[name] = fault{code, nth - 1, times};
}

void on_call(const std::string& name, std::function<void()> hook) {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  the_world().hooks[name] = std::move(hook);
}

void break_device(int device, int code) {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  the_world().contexts[device].broken = code;
}

void refuse_runtime(int code) {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  the_world().runtime_refusal = code;
}

void remove_entry_point(const std::string& name) {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  the_world().removed.insert(name);
}

void set_alignment(std::size_t bytes) {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  the_world().alignment = bytes;
}

void set_attribute(CUdevice_attribute name, int value) {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  the_world().attributes[name] = value;
}

void set_granularity(std::size_t bytes) {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  the_world().granularity = bytes;
}

void set_peer_access(bool reachable) {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  the_world().peer_access = reachable;
}

}  // namespace fake_cuda
