// Streams as queues of work that runs when somebody waits for it.
#include "world.hpp"

namespace fake_cuda {

namespace {

stream& per_thread_stream(int device) {
  std::uint64_t& id = this_thread().default_streams[device];
  if (the_world().streams.count(id) == 0) {  // none yet, or a reset has destroyed it
    id = new_stream(device, true).id;
  }
  return the_world().streams.at(id);
}

}  // namespace

stream& new_stream(int device, bool blocking) {
  world& w = the_world();
  stream& s = w.streams[++w.last_id];
  s.id = w.last_id;
  s.device = device;
  s.blocking = blocking;
  return s;
}

stream* find_stream(CUstream handle) {
  world& w = the_world();
  const CUcontext current = current_context();
  if (handle == nullptr || handle == CU_STREAM_LEGACY) {
    return current == nullptr ? nullptr : &w.streams.at(w.legacy[current->device]);
  }
  if (handle == CU_STREAM_PER_THREAD) {
    return current == nullptr ? nullptr : &per_thread_stream(current->device);
  }
  const auto found = w.handles.find(handle);
  if (found == w.handles.end()) {
    w.misuse.push_back(w.reset_handles.count(handle) != 0
                           ? "a call was given a stream that a reset has destroyed"
                           : "a call was given a stream that has been destroyed");
    return nullptr;
  }
  return &w.streams.at(found->second);
}

position submit(stream& s, std::vector<position> after, std::shared_ptr<void> keeps) {
  world& w = the_world();
  const std::uint64_t legacy = w.legacy[s.device];
  if (s.id == legacy) {
    for (const auto& entry : w.streams) {
      const stream& other = entry.second;
      if (other.blocking && other.device == s.device && other.id != s.id &&
          !other.pending.empty()) {
        after.push_back(other.tail());
      }
    }
  } else if (s.blocking) {
    after.push_back(w.streams.at(legacy).tail());
  }
  s.pending.push_back({std::move(after), std::move(keeps)});
  return s.tail();
}

void forget_if_gone(std::uint64_t id) {
  world& w = the_world();
  const stream& s = w.streams.at(id);
  if (s.destroyed && s.pending.empty()) {
    w.streams.erase(id);
  }
}

bool is_complete(position p) {
  const auto found = the_world().streams.find(p.stream);
  return found == the_world().streams.end() || found->second.completed >= p.index;
}

void complete_until(position p) {
  while (!is_complete(p)) {
    stream& s = the_world().streams.at(p.stream);
    for (const position& before : s.pending.front().after) {
      complete_until(before);
    }
    s.pending.pop_front();
    ++s.completed;
    forget_if_gone(s.id);
  }
}

void complete_device(int device) {
  std::vector<position> tails;
  for (const auto& entry : the_world().streams) {
    if (entry.second.device == device) {
      tails.push_back(entry.second.tail());
    }
  }
  for (const position& tail : tails) {
    complete_until(tail);
  }
}

}  // namespace fake_cuda
