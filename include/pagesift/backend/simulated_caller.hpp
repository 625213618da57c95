// How the simulated device is called: what all calls of its backend have in common.
#pragma once

#include <pagesift/backend/simulated_calls.hpp>
#include <pagesift/backend/simulated_device.hpp>
#include <pagesift/core/status.hpp>

#include <mutex>

namespace pagesift {

/// Names one simulated device, which must outlive it, and makes calls of it.
class simulated_caller {
 public:
  [[nodiscard]] simulated_device& device() const noexcept { return *device_; }

 protected:
  using lock = std::unique_lock<std::mutex>;

  explicit simulated_caller(simulated_device& device) noexcept : device_{&device} {}

  /// Makes one call: hooks around it, a planted fault in its place, and an entry in the book.
  template <typename Act>
  status call(simulated_call which, Act act) const noexcept {
    run_hook(which, device_->before_);
    status ending;
    {
      lock held{device_->mutex_};
      const auto planted = device_->book_.begin(which);
      ending = planted.has_value() ? *planted : act(*device_, held);
      device_->book_.end(which, ending);
    }
    run_hook(which, device_->after_);
    return ending;
  }

  [[nodiscard]] static status failure(const char* call, int code) noexcept {
    return {outcome::failed, code, call};
  }

  [[nodiscard]] static status shortage(const char* call) noexcept {
    return {outcome::shortage, simulated_code::no_memory, call};
  }

 private:
  void run_hook(simulated_call which, const simulated_device::call_hook& hook) const {
    lock held{device_->mutex_};
    if (hook) {
      const simulated_device::call_hook copy = hook;
      held.unlock();
      copy(which);
    }
  }

  simulated_device* device_;
};

}  // namespace pagesift
