// What a process has once, however many of its libraries were built with pagesift.
#pragma once

#include <pagesift/core/stay_loaded.hpp>

#include <atomic>
#include <cstring>
#include <memory>

#if defined(__cpp_rtti) || defined(__GXX_RTTI)
#include <typeinfo>
#endif

/// On a function or a class: the dynamic linker makes one of all copies, also of libraries that
/// were compiled with -fvisibility=hidden. Not on templates: an argument that is hidden hides the
/// instance whatever the template says.
#if defined(__GNUC__)
#define PAGESIFT_ONE_PER_PROCESS __attribute__((visibility("default")))
#else
#define PAGESIFT_ONE_PER_PROCESS
#endif

namespace pagesift {

/// To be raised when the layout of a pool changes: libraries built with different ones share
/// nothing that is looked up by `one_per_process`.
inline constexpr int layout_version = 1;

/// Objects found by the name of their type. They are never destroyed. Thread-safe without a lock,
/// which a forked child might find held by a thread that it does not have.
class PAGESIFT_ONE_PER_PROCESS named_objects {
 public:
  /// The only object by that name, made at first sight. Of several threads that make it at once one
  /// keeps its own. \throws std::bad_alloc and what making a T throws
  template <typename T>
  [[nodiscard]] static void* of(const char* name, int layout) {
    std::atomic<entry*>& first = get().first_;
    entry* seen = first.load(std::memory_order_acquire);
    if (void* const present = find(seen, nullptr, name, layout)) {
      return present;
    }
    auto object = std::make_unique<T>();
    auto added = std::make_unique<entry>(entry{seen, name, layout, object.get()});
    while (!first.compare_exchange_weak(added->next, added.get(), std::memory_order_acq_rel)) {
      if (void* const present = find(added->next, seen, name, layout)) {
        return present;
      }
      seen = added->next;
    }
    (void)added.release();
    return object.release();
  }

 private:
  struct entry {
    entry* next;
    const char* name;
    int layout;
    void* object;
  };

  constexpr named_objects() noexcept = default;
  [[nodiscard]] static named_objects& get() noexcept {
    static named_objects all;
    return all;
  }

  /// What is by that name from `begin` on, before `end`.
  [[nodiscard]] static void* find(const entry* begin, const entry* end, const char* name,
                                  int layout) noexcept {
    for (const entry* e = begin; e != end; e = e->next) {
      if (e->layout == layout && std::strcmp(e->name, name) == 0) {
        return e->object;
      }
    }
    return nullptr;
  }

  std::atomic<entry*> first_{nullptr};
};

/// Name of a type that is the same in every library of the process.
template <typename T>
[[nodiscard]] const char* name_of_type() noexcept {
#if defined(__cpp_rtti) || defined(__GXX_RTTI)
  return typeid(T).name();
#else
  return __PRETTY_FUNCTION__;
#endif
}

/// The process's only `T`, default-made at first use and never destroyed. Costs a search the first
/// time that a library asks. \throws std::bad_alloc and what making a T throws
template <typename T>
[[nodiscard]] T& one_per_process() {
  static T* const only = [] {
    const char* const name = name_of_type<T>();
    stay_loaded(name);
    return static_cast<T*>(named_objects::of<T>(name, layout_version));
  }();
  return *only;
}

}  // namespace pagesift
