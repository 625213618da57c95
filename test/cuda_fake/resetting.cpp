// cudaDeviceReset: what it leaves of a device.
#include "world.hpp"

#include <iterator>
#include <sys/mman.h>

namespace fake_cuda {

namespace {

void forget_streams(int device) {
  world& w = the_world();
  for (auto at = w.handles.begin(); at != w.handles.end();) {
    if (w.streams.at(at->second).device != device) {
      ++at;
      continue;
    }
    w.reset_handles.insert(at->first);
    w.recycled.push_back(at->first);
    at = w.handles.erase(at);
  }
  for (auto at = w.streams.begin(); at != w.streams.end();) {
    at = at->second.device == device ? w.streams.erase(at) : std::next(at);
  }
  w.legacy[device] = ++w.last_id;
  stream& legacy = w.streams[w.last_id];
  legacy.id = w.last_id;
  legacy.device = device;
}

void forget_events(int device) {
  auto& events = the_world().events;
  for (auto at = events.begin(); at != events.end();) {
    at = at->second.device == device ? events.erase(at) : std::next(at);
  }
}

void forget_memory(int device) {
  auto& allocations = the_world().allocations;
  for (auto at = allocations.begin(); at != allocations.end();) {
    if (at->second.device != device) {
      ++at;
      continue;
    }
    munmap(at->second.mapped, at->second.mapped_bytes);
    at = allocations.erase(at);
  }
  unmap_device(device);
  the_world().used[device] = 0;
}

}  // namespace

CUresult reset_device(int device) {
  forget_streams(device);
  forget_events(device);
  forget_memory(device);
  the_world().contexts[device].destroyed = true;
  return CUDA_SUCCESS;
}

void revive(CUcontext context) {
  if (context->destroyed) {
    context->destroyed = false;
    context->id = ++the_world().last_context;
  }
}

}  // namespace fake_cuda
