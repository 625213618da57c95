// Where the host backend's memory comes from: mapped from the system on Linux, the heap elsewhere.
#pragma once

#include <pagesift/core/bytes.hpp>
#include <pagesift/core/status.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace pagesift {

/// Every piece of host memory starts at a multiple of this many bytes: a page of the page heap,
/// and a huge page of x86-64 and of AArch64 with pages of 4 KiB.
inline constexpr std::size_t host_memory_alignment = 2 * mebibyte;

/// Nothing larger is asked for: the arithmetic below would wrap, and so would the heap's own.
inline constexpr std::size_t most_host_bytes = std::numeric_limits<std::size_t>::max() / 2;

/// Memory of the heap, by aligned `operator new`.
struct heap_memory {
  [[nodiscard]] static status acquire(std::size_t bytes, void*& p) noexcept {
    void* const memory =
        bytes > most_host_bytes
            ? nullptr
            : ::operator new (bytes, std::align_val_t{host_memory_alignment}, std::nothrow);
    if (memory == nullptr) {
      return {outcome::shortage, ENOMEM, "operator new"};
    }
    p = memory;
    return {};
  }

  static status release(void* p, std::size_t /*bytes*/) noexcept {
    ::operator delete (p, std::align_val_t{host_memory_alignment}, std::nothrow);
    return {};
  }
};

#ifdef __linux__

// LeakSanitizer looks for pointers in the memory of the heap and in what it is told of; null where
// the program runs without it.
extern "C" void __lsan_register_root_region(const void*, std::size_t) __attribute__((weak));
extern "C" void __lsan_unregister_root_region(const void*, std::size_t) __attribute__((weak));

/// Memory mapped for each piece alone, with transparent huge pages asked for: the first use of
/// 400 MB takes half as long, giving it back a tenth, and each random access a fifth less
/// (docs/decisions/0010-huge-pages-on-the-host.md). A piece takes whole multiples of the alignment.
struct mapped_memory {
  [[nodiscard]] static status acquire(std::size_t bytes, void*& p) noexcept {
    if (bytes > most_host_bytes) {
      return {outcome::shortage, ENOMEM, "mmap"};
    }
    const std::size_t length = whole_bytes(bytes);
    void* const mapped = map(length + slack_bytes);
    if (mapped == MAP_FAILED) {
      // The limits on locked memory and on the number of mappings end as a lack of memory does.
      const bool shortage = errno == ENOMEM || errno == EAGAIN;
      return {shortage ? outcome::shortage : outcome::failed, errno, "mmap"};
    }
    p = trim(static_cast<char*>(mapped), length);
    // Where the system has no huge pages it says so, and the memory is as good without.
    (void)::madvise(p, length, MADV_HUGEPAGE);
    show_leak_checker(p, length);
    return {};
  }

  static status release(void* p, std::size_t bytes) noexcept {
    const std::size_t length = whole_bytes(bytes);
    if (::munmap(p, length) != 0) {
      return {outcome::failed, errno, "munmap"};
    }
    hide_from_leak_checker(p, length);
    return {};
  }

 private:
  /// What a mapping needs beyond its length to hold an aligned piece: all but the least page.
  static constexpr std::size_t slack_bytes = host_memory_alignment - 4 * kibibyte;

  [[nodiscard]] static std::size_t whole_bytes(std::size_t bytes) noexcept {
    return divide_round_up(bytes, host_memory_alignment) * host_memory_alignment;
  }

  [[nodiscard]] static void* map(std::size_t bytes) noexcept {
    return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }

  /// Keeps the aligned `length` bytes of a mapping that has `slack_bytes` more. An end that cannot
  /// be unmapped stays: nobody touches it, so it is address space and no memory.
  [[nodiscard]] static void* trim(char* mapped, std::size_t length) noexcept {
    const std::size_t past = reinterpret_cast<std::uintptr_t>(mapped) % host_memory_alignment;
    const std::size_t before = past == 0 ? 0 : host_memory_alignment - past;
    const std::size_t after = slack_bytes - before;
    if (before != 0) {
      (void)::munmap(mapped, before);
    }
    if (after != 0) {
      (void)::munmap(mapped + before + length, after);
    }
    return mapped + before;
  }

  static void show_leak_checker(const void* p, std::size_t length) noexcept {
    if (&__lsan_register_root_region != nullptr) {
      __lsan_register_root_region(p, length);
    }
  }
  static void hide_from_leak_checker(const void* p, std::size_t length) noexcept {
    if (&__lsan_unregister_root_region != nullptr) {
      __lsan_unregister_root_region(p, length);
    }
  }
};

using host_memory = mapped_memory;

#else

using host_memory = heap_memory;

#endif

}  // namespace pagesift
