// Where the host backend's memory comes from.
#include <pagesift/backend/host_memory.hpp>

#include <doctest/doctest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>

#ifdef __linux__
#include <cstring>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PAGESIFT_TEST_LEAKS 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define PAGESIFT_TEST_LEAKS 1
#endif

using pagesift::heap_memory;
using pagesift::host_memory;
using pagesift::mebibyte;

namespace {

template <typename Source>
unsigned char* acquired(std::size_t bytes) {
  void* p = nullptr;
  REQUIRE(Source::acquire(bytes, p).ok());
  REQUIRE(p != nullptr);
  return static_cast<unsigned char*>(p);
}

}  // namespace

TYPE_TO_STRING(heap_memory);
TYPE_TO_STRING(host_memory);

TEST_CASE_TEMPLATE("host memory of any size is aligned and can be written from end to end", Source,
                   heap_memory, host_memory) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{5000}, 2 * mebibyte, 7 * mebibyte}) {
    unsigned char* const p = acquired<Source>(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(p) % pagesift::host_memory_alignment == 0);
    p[0] = 1;
    p[bytes - 1] = 2;
    CHECK(p[bytes - 1] == 2);
    CHECK(Source::release(p, bytes).ok());
  }
}

TEST_CASE_TEMPLATE("more host memory than there can be is a shortage", Source, heap_memory,
                   host_memory) {
  constexpr std::size_t largest = std::numeric_limits<std::size_t>::max();
  for (const std::size_t bytes : {largest, largest - mebibyte, largest / 2 + 1}) {
    void* p = nullptr;
    const pagesift::status result = Source::acquire(bytes, p);
    CHECK(result.shortage());
    CHECK(result.code == ENOMEM);
    CHECK(p == nullptr);
  }
}

#ifdef __linux__

namespace {

/// The flags that the kernel keeps for the mapping that holds `p`, as smaps writes them.
std::string mapping_flags(const void* p) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  std::ifstream maps{"/proc/self/smaps"};
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::size_t dash = 0;
    if (line.compare(0, 8, "VmFlags:") == 0 && inside) {
      return line + ' ';
    }
    if (line.find_first_not_of("0123456789abcdef") == (dash = line.find('-'))) {
      const std::uintptr_t end = std::stoull(line.substr(dash + 1), nullptr, 16);
      inside = std::stoull(line, nullptr, 16) <= address && address < end;
    }
  }
  return {};
}

/// Bytes of address space that the process has mapped.
std::size_t mapped_bytes() {
  std::size_t pages = 0;
  std::ifstream{"/proc/self/statm"} >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE("huge pages are asked for in all of a piece") {
  if (!std::ifstream{"/sys/kernel/mm/transparent_hugepage/enabled"}) {
    MESSAGE("this kernel has no transparent huge pages");
    return;
  }
  unsigned char* const p = acquired<host_memory>(6 * mebibyte);
  CHECK(mapping_flags(p).find(" hg ") != std::string::npos);
  CHECK(mapping_flags(p + 6 * mebibyte - 1).find(" hg ") != std::string::npos);
  CHECK(host_memory::release(p, 6 * mebibyte).ok());
}

TEST_CASE("acquiring host memory touches none of it") {
  constexpr std::size_t bytes = 8 * mebibyte;
  unsigned char* const p = acquired<host_memory>(bytes);
  std::vector<unsigned char> resident(bytes / static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), 1);
  REQUIRE(mincore(p, bytes, resident.data()) == 0);
  for (const unsigned char page : resident) {
    REQUIRE((page & 1) == 0);
  }
  CHECK(host_memory::release(p, bytes).ok());
}

TEST_CASE("released host memory is the system's again, and nothing around it stays mapped") {
  // Mappings of odd lengths that stay, so that each piece is cut from another place.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<void*> odd;
  const std::size_t before = mapped_bytes();
  for (std::size_t round = 0; round < 200; ++round) {
    odd.push_back(
        mmap(nullptr, (1 + round % 50) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    unsigned char* const p = acquired<host_memory>(3 * mebibyte);
    CHECK(host_memory::release(p, 3 * mebibyte).ok());
    unsigned char resident = 0;
    CHECK(mincore(p, 1, &resident) == -1);
    CHECK(errno == ENOMEM);
  }
  CHECK(mapped_bytes() < before + 5100 * page + 10 * mebibyte);
  for (std::size_t round = 0; round < odd.size(); ++round) {
    CHECK(munmap(odd[round], (1 + round % 50) * page) == 0);
  }
}

TEST_CASE("memory that cannot be released is a failure and no shortage") {
  unsigned char* const p = acquired<host_memory>(2 * mebibyte);
  const pagesift::status result = host_memory::release(p + 1, 2 * mebibyte);
  CHECK(result.failed());
  CHECK(result.code == EINVAL);
  CHECK(std::strcmp(result.call, "munmap") == 0);
  CHECK(host_memory::release(p, 2 * mebibyte).ok());
}

#ifdef PAGESIFT_TEST_LEAKS

extern "C" int __lsan_do_recoverable_leak_check();

namespace {

/// Out of line, so that no register or stack slot keeps the pointer.
[[gnu::noinline]] void keep_only_pointer_in(unsigned char* p) {
  auto* const kept = new int{7};
  std::memcpy(p, &kept, sizeof kept);
}
[[gnu::noinline]] void drop_pointer_in(unsigned char* p) {
  int* kept = nullptr;
  std::memcpy(&kept, p, sizeof kept);
  CHECK(*kept == 7);
  delete kept;
}

}  // namespace

TEST_CASE("what only host memory points to is no leak") {
  unsigned char* const p = acquired<host_memory>(2 * mebibyte);
  for (std::size_t i = 0; i < 16; ++i) {
    keep_only_pointer_in(p + i * sizeof(int*));
  }
  CHECK(__lsan_do_recoverable_leak_check() == 0);
  for (std::size_t i = 0; i < 16; ++i) {
    drop_pointer_in(p + i * sizeof(int*));
  }
  CHECK(host_memory::release(p, 2 * mebibyte).ok());
}

#endif
#endif
