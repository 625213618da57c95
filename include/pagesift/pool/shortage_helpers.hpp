// Who can give memory back when somebody else is short of it.
#pragma once

#include <pagesift/backend/memory_place.hpp>
#include <pagesift/core/one_per_process.hpp>
#include <pagesift/core/process_life.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace pagesift {

/// Gives memory back to where it is from, `bytes` bytes or what it has; returns how many bytes.
using memory_giver = std::function<std::size_t(std::size_t bytes)>;

/// All who can give memory back, in the process. Thread-safe; calls nobody with a lock held.
class PAGESIFT_ONE_PER_PROCESS shortage_helpers final : private life_member {
 public:
  struct helper {
    memory_place place;
    memory_giver give;
    int calls = 0;  ///< in progress
    bool gone = false;
  };
  using helper_ptr = std::shared_ptr<helper>;

  [[nodiscard]] static shortage_helpers& get() { return one_per_process<shortage_helpers>(); }

  /// \throws std::bad_alloc
  [[nodiscard]] helper_ptr add(const memory_place& place, memory_giver give) {
    auto added = std::make_shared<helper>(helper{place, std::move(give)});
    const std::lock_guard<std::mutex> guard{mutex_};
    helpers_.push_back(added);
    return added;
  }

  /// Returns when it is not being called any more, unless this thread is what it is called from.
  void remove(const helper_ptr& h) noexcept {
    std::unique_lock<std::mutex> lock{mutex_};
    h->gone = true;
    helpers_.erase(std::find(helpers_.begin(), helpers_.end(), h));
    const int own_calls = called() == h.get() ? 1 : 0;
    call_ended_.wait(lock, [&] { return h->calls == own_calls; });
  }

  /// Asks those who have memory of that place, but for `asker`, until what was asked for has been
  /// given. Returns the bytes given. Who is being asked gets nothing by asking.
  /// \throws std::bad_alloc, what a giver throws
  std::size_t ask(const memory_place& place, std::size_t bytes, const helper_ptr& asker = nullptr) {
    std::size_t given = 0;
    if (is_being_asked()) {
      return given;
    }
    for (const helper_ptr& h : those_at(place, asker)) {
      given += given < bytes ? call(*h, bytes - given) : 0;
    }
    return given;
  }

  /// Whether the calling thread is being asked: nobody is asked for what it requests meanwhile.
  [[nodiscard]] static bool is_being_asked() noexcept { return called() != nullptr; }

  shortage_helpers() noexcept { process_life::get().join(*this); }
  ~shortage_helpers() override { process_life::get().leave(*this); }

 private:
  /// Whom the calling thread is asking, or null.
  [[nodiscard]] static const helper*& called() noexcept {
    static thread_local const helper* now = nullptr;
    return now;
  }

  [[nodiscard]] std::vector<helper_ptr> those_at(const memory_place& place,
                                                 const helper_ptr& asker) {
    std::vector<helper_ptr> found;
    const std::lock_guard<std::mutex> guard{mutex_};
    std::copy_if(helpers_.begin(), helpers_.end(), std::back_inserter(found),
                 [&](const helper_ptr& h) { return h != asker && h->place == place; });
    return found;
  }

  std::size_t call(helper& h, std::size_t bytes) {
    {
      const std::lock_guard<std::mutex> guard{mutex_};
      if (h.gone) {
        return 0;
      }
      ++h.calls;
    }
    called() = &h;
    const call_end end{*this, h};
    return h.give(bytes);
  }

  struct call_end {
    call_end(shortage_helpers& a, helper& h) noexcept : all{a}, ended{h} {}
    ~call_end() {
      called() = nullptr;
      const std::lock_guard<std::mutex> guard{all.mutex_};
      --ended.calls;
      all.call_ended_.notify_all();
    }
    call_end(const call_end&) = delete;
    call_end& operator=(const call_end&) = delete;
    shortage_helpers& all;
    helper& ended;
  };

  void before_fork() noexcept override { mutex_.lock(); }
  void after_fork_in_parent() noexcept override { mutex_.unlock(); }
  void after_fork_in_child() noexcept override {
    for (const helper_ptr& h : helpers_) {  // the threads that were calling are not here
      h->calls = called() == h.get() ? 1 : 0;
    }
    new (&call_ended_) std::condition_variable;
    mutex_.unlock();
  }
  void at_exit() noexcept override {}

  std::mutex mutex_;
  std::condition_variable call_ended_;
  std::vector<helper_ptr> helpers_;
};

/// Keeps a giver known while it lives. When its destructor returns nobody calls the giver any more;
/// so what a giver waits for must not be held by who destroys its registration.
class giver_registration {
 public:
  giver_registration() noexcept = default;
  /// \throws std::bad_alloc
  giver_registration(const memory_place& place, memory_giver give)
      : helper_{shortage_helpers::get().add(place, std::move(give))} {}
  giver_registration(giver_registration&& other) noexcept : helper_{std::move(other.helper_)} {}
  giver_registration& operator=(giver_registration&& other) noexcept {
    if (this != &other) {
      reset();
      helper_ = std::move(other.helper_);
    }
    return *this;
  }
  ~giver_registration() { reset(); }

  void reset() noexcept {
    if (helper_ != nullptr) {
      shortage_helpers::get().remove(helper_);
      helper_.reset();
    }
  }

  [[nodiscard]] const shortage_helpers::helper_ptr& helper() const noexcept { return helper_; }

 private:
  shortage_helpers::helper_ptr helper_;
};

/// Has `give(bytes)` called when a pool finds no more memory of `place`, after that pool has tried
/// all of its own and before it throws `out_of_memory`. `give` gives idle memory back to the
/// device, `bytes` or what it has, and returns how many bytes that were. It is called without a
/// lock, by the thread whose request it is, possibly by several at once, a bounded number of times
/// for a request; it may use pools, but nobody is asked on behalf of what it requests. What it
/// throws comes out of the request. \throws std::bad_alloc
[[nodiscard]] inline giver_registration on_shortage_of(const memory_place& place,
                                                       memory_giver give) {
  return giver_registration{place, std::move(give)};
}

/// Has idle memory of `place` given back by the pools that have some, and by whoever else has
/// registered: for allocators other than pagesift's that are short of it. Returns the bytes given,
/// `bytes` or more if there were so many. A pool gives whole granules, and waits for submitted work
/// where it has to. \throws std::bad_alloc, what a giver throws
inline std::size_t ask_for_memory(const memory_place& place, std::size_t bytes) {
  return shortage_helpers::get().ask(place, bytes);
}

}  // namespace pagesift
