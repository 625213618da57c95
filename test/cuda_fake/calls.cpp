// What every call of the fake goes through before it does anything.
#include "world.hpp"

namespace fake_cuda {

namespace {

void run_hook(const std::string& name) {
  std::function<void()> hook;
  {
    std::lock_guard<std::mutex> lock{the_world().mutex};
    const auto found = the_world().hooks.find(name);
    if (found != the_world().hooks.end()) {
      hook = found->second;
    }
  }
  if (hook) {
    hook();
  }
}

int injected_fault(const std::string& name) {
  const auto found = the_world().faults.find(name);
  if (found == the_world().faults.end() || found->second.times == 0) {
    return 0;
  }
  fault& f = found->second;
  if (f.skip > 0) {
    --f.skip;
    return 0;
  }
  --f.times;
  return f.code;
}

int broken_context() {
  const CUcontext current = current_context();
  if (current == nullptr) {
    return 0;
  }
  return current->destroyed ? CUDA_ERROR_CONTEXT_IS_DESTROYED : current->broken;
}

CUresult enter(const call& c, bool needs_context, const std::function<CUresult()>& body) {
  run_hook(c.name);
  world& w = the_world();
  std::lock_guard<std::mutex> lock{w.mutex};
  w.log.push_back(c);
  ++w.counts[c.name];
  if (const int code = injected_fault(c.name)) {
    return static_cast<CUresult>(code);
  }
  const int broken = needs_context ? broken_context() : 0;
  return broken != 0 ? static_cast<CUresult>(broken) : body();
}

cudaError_t keep_last_error(CUresult result) {
  const auto error = static_cast<cudaError_t>(result);
  std::lock_guard<std::mutex> lock{the_world().mutex};
  if (error != cudaSuccess) {
    this_thread().last_error = error;
  }
  return error;
}

int refusal() {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  return the_world().runtime_refusal;
}

void bind_default_context() {
  std::lock_guard<std::mutex> lock{the_world().mutex};
  if (current_context() == nullptr) {
    auto& stack = this_thread().contexts;
    stack.assign(1, &the_world().contexts[0]);
  }
  revive(current_context());
}

}  // namespace

CUcontext current_context() {
  const auto& stack = this_thread().contexts;
  return stack.empty() ? nullptr : stack.back();
}

CUresult driver_call(const call& c, const std::function<CUresult()>& body) {
  return enter(c, true,
               [&] { return current_context() == nullptr ? CUDA_ERROR_INVALID_CONTEXT : body(); });
}

CUresult contextless_call(const call& c, const std::function<CUresult()>& body) {
  return enter(c, false, body);
}

cudaError_t runtime_call(const call& c, const std::function<CUresult()>& body) {
  if (const int code = refusal()) {
    return keep_last_error(static_cast<CUresult>(code));
  }
  bind_default_context();
  return keep_last_error(enter(c, true, body));
}

cudaError_t contextless_runtime_call(const call& c, const std::function<CUresult()>& body) {
  if (const int code = refusal()) {
    return keep_last_error(static_cast<CUresult>(code));
  }
  return keep_last_error(enter(c, false, body));
}

}  // namespace fake_cuda
