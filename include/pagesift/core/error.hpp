// The exceptions pagesift throws. Each message is one sentence with the numbers a person needs.
//
// std::bad_alloc
//   out_of_memory          the pool's memory is short
//   std::bad_array_new_length
//     size_overflow        the size does not fit the address space
// std::invalid_argument
//   invalid_argument       an argument or option out of range
//     invalid_alignment
// std::runtime_error
//   backend_error          a call of the backend failed for a reason other than shortage
//   capture_error          the stream captures a graph, and the call cannot be met there
//   process_error          the process has no way to the pool's memory
//     fork_error           ... since it is a forked child
//     exit_error           ... since it is exiting
//     reset_error          ... since the device was reset
//
// A shortage of the pool's own bookkeeping memory on the host is a plain std::bad_alloc.
#pragma once

#include <cstddef>
#include <new>
#include <stdexcept>
#include <string>

namespace pagesift {

/// An argument or an option has a value that cannot be meant.
class invalid_argument : public std::invalid_argument {
 public:
  explicit invalid_argument(const std::string& what) : std::invalid_argument{"pagesift: " + what} {}
};

/// An alignment that is not a power of two, or too large.
class invalid_alignment : public invalid_argument {
 public:
  invalid_alignment(std::size_t alignment, std::size_t largest)
      : invalid_argument{"an alignment must be a power of two from 1 to " +
                         std::to_string(largest) + " bytes, got " + std::to_string(alignment)} {}
};

/// A size in bytes that does not fit the address space.
class size_overflow : public std::bad_array_new_length {
 public:
  /// `count` elements of `element_bytes` bytes each were asked for.
  size_overflow(std::size_t count, std::size_t element_bytes)
      : what_{"pagesift: a request of " + std::to_string(count) +
              (element_bytes == 1 ? std::string{" bytes"}
                                  : " elements of " + std::to_string(element_bytes) + " bytes") +
              " does not fit the address space"} {}

  [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

/// A backend call failed for a reason other than shortage. Blocks in use are as before.
class backend_error : public std::runtime_error {
 public:
  /// \param code the backend's own error code; for CUDA a `cudaError_t`
  /// \param call the call that failed
  /// \param text what the backend says about the code
  backend_error(int code, const std::string& call, const std::string& text)
      : std::runtime_error{"pagesift: " + call + " failed with code " + std::to_string(code) +
                           " (" + text + ")"},
        code_{code} {}

  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

/// A request named a stream that is capturing a graph and cannot be served. Nothing was touched; a
/// capture that was valid still is.
class capture_error : public std::runtime_error {
 public:
  /// \param requested bytes
  /// \param why goes on after "a stream"
  capture_error(std::size_t requested, const std::string& why)
      : std::runtime_error{"pagesift: a request of " + std::to_string(requested) +
                           " bytes named a stream " + why} {}
  /// \param what the sentence, for what is no request
  explicit capture_error(const std::string& what) : std::runtime_error{"pagesift: " + what} {}
};

/// The process has no way to the pool's memory any more. Nothing was touched.
class process_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A forked child used a pool, or a backend, that its parent had opened: a device's driver does not
/// come along into a child.
class fork_error : public process_error {
 public:
  /// \param memory what the child has no way to: "device memory"
  explicit fork_error(const std::string& memory)
      : process_error{"pagesift: a forked child has no way to the " + memory +
                      " of the process it was forked from; a child that needs some must be forked "
                      "before that process uses any, or call exec"} {}
};

/// A pool was asked for memory after the process had begun to exit.
class exit_error : public process_error {
 public:
  /// \param memory what there is no way to: "device memory"
  explicit exit_error(const std::string& memory)
      : process_error{"pagesift: the process is exiting, and the driver of its " + memory +
                      " may be gone already"} {}
};

/// A pool was used after its device had been reset (cudaDeviceReset), with all of its memory.
class reset_error : public process_error {
 public:
  reset_error()
      : process_error{
            "pagesift: the device was reset since this pool was made; its memory is gone: make "
            "another pool"} {}
};

/// The numbers behind an `out_of_memory`, all in bytes.
struct shortage_report {
  std::size_t requested = 0;           ///< what was asked for
  std::size_t held = 0;                ///< taken from the backend by this pool
  std::size_t in_use = 0;              ///< of that, in users' hands
  std::size_t idle = 0;                ///< held minus in use
  std::size_t limit = 0;               ///< the pool's limit in whole pages; SIZE_MAX means none
  std::size_t free_bytes = 0;          ///< what the backend has left, for anybody
  std::size_t total_bytes = 0;         ///< what the backend has in all
  std::size_t largest_idle_block = 0;  ///< longest idle piece the pool holds
};

/// The pool's memory is short. Blocks in use are as before; of the idle memory, which did not do,
/// some may have been given back to the backend.
class out_of_memory : public std::bad_alloc {
 public:
  /// \param memory what is short: "device memory", "host memory"
  out_of_memory(const std::string& memory, const shortage_report& report)
      : report_{report}, what_{sentence(memory, report)} {}

  [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }
  [[nodiscard]] const shortage_report& report() const noexcept { return report_; }

 private:
  static std::string sentence(const std::string& memory, const shortage_report& r) {
    const auto bytes = [](std::size_t n) { return std::to_string(n); };
    const std::string limit =
        r.limit == static_cast<std::size_t>(-1) ? std::string{"none"} : bytes(r.limit);
    return "pagesift: out of " + memory + ": requested " + bytes(r.requested) + " bytes; held " +
           bytes(r.held) + ", in use " + bytes(r.in_use) + ", idle " + bytes(r.idle) + ", limit " +
           limit + ", free " + bytes(r.free_bytes) + " of " + bytes(r.total_bytes) +
           ", largest idle block " + bytes(r.largest_idle_block);
  }

  shortage_report report_;
  std::string what_;
};

}  // namespace pagesift
