// Where a call came from, as far as the platform tells.
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>

#if defined(__has_include)
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define PAGESIFT_HAS_CALL_STACKS
#endif
#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#define PAGESIFT_HAS_DEMANGLING
#endif
#endif

namespace pagesift {

/// Return addresses of the calls in progress, the innermost first; empty where the platform does
/// not give them (it needs glibc's <execinfo.h>). Keeps the innermost `most_frames`.
class call_stack {
 public:
  static constexpr std::size_t most_frames = 24;

  /// The calling thread's. Allocates nothing after the first call in the process.
  [[nodiscard]] static call_stack here() noexcept {
    call_stack stack;
#ifdef PAGESIFT_HAS_CALL_STACKS
    const int count = backtrace(stack.frames_.data(), static_cast<int>(most_frames));
    stack.size_ = count > 0 ? static_cast<std::size_t>(count) : 0;
#endif
    return stack;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// Precondition: `i < size()`.
  [[nodiscard]] const void* frame(std::size_t i) const noexcept { return frames_[i]; }

  /// One indented line a frame: module, function where the module exports it (link the program with
  /// -rdynamic), offset and address, as `addr2line` takes them. \throws std::bad_alloc
  [[nodiscard]] std::string to_text() const {
    std::string text;
#ifdef PAGESIFT_HAS_CALL_STACKS
    const std::unique_ptr<char*, void (*)(void*)> names{
        backtrace_symbols(frames_.data(), static_cast<int>(size_)), std::free};
    for (std::size_t i = 0; names != nullptr && i < size_; ++i) {
      text += "    #" + std::to_string(i) + ' ' + readable(names.get()[i]) + '\n';
    }
#endif
    return text;
  }

 private:
  /// A frame as `backtrace_symbols` writes it, "module(name+offset) [address]", with the name as it
  /// is in the source. \throws std::bad_alloc
  [[nodiscard]] static std::string readable(const std::string& frame) {
#ifdef PAGESIFT_HAS_DEMANGLING
    const std::size_t begin = frame.find('(') + 1;
    const std::size_t end = frame.find('+', begin);
    if (begin != 0 && end != std::string::npos) {
      int failed = 0;
      const std::unique_ptr<char, void (*)(void*)> name{
          abi::__cxa_demangle(frame.substr(begin, end - begin).c_str(), nullptr, nullptr, &failed),
          std::free};
      if (name != nullptr) {
        return frame.substr(0, begin) + name.get() + frame.substr(end);
      }
    }
#endif
    return frame;
  }

  std::array<void*, most_frames> frames_{};
  std::size_t size_ = 0;
};

}  // namespace pagesift
