#include <pagesift/core/error.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace {

using std::is_base_of_v;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

pagesift::shortage_report numbered_report() {
  pagesift::shortage_report report;
  report.requested = 101;
  report.held = 202;
  report.in_use = 303;
  report.idle = 404;
  report.limit = 505;
  report.free_bytes = 606;
  report.total_bytes = 707;
  report.largest_idle_block = 808;
  return report;
}

TEST_CASE("a shortage is a std::bad_alloc, and an overflow a std::bad_array_new_length") {
  CHECK(is_base_of_v<std::bad_alloc, pagesift::out_of_memory>);
  CHECK(is_base_of_v<std::bad_array_new_length, pagesift::size_overflow>);
  CHECK_FALSE(is_base_of_v<pagesift::out_of_memory, pagesift::size_overflow>);
}

TEST_CASE("an invalid argument is a std::invalid_argument, a backend's failure a runtime error") {
  CHECK(is_base_of_v<std::invalid_argument, pagesift::invalid_argument>);
  CHECK(is_base_of_v<pagesift::invalid_argument, pagesift::invalid_alignment>);
  CHECK(is_base_of_v<std::runtime_error, pagesift::backend_error>);
  CHECK(is_base_of_v<std::runtime_error, pagesift::capture_error>);
  CHECK_FALSE(is_base_of_v<std::bad_alloc, pagesift::backend_error>);
}

TEST_CASE("the message of a shortage is one sentence with all its numbers") {
  const pagesift::out_of_memory error{"device memory", numbered_report()};
  CHECK(std::string{error.what()} ==
        "pagesift: out of device memory: requested 101 bytes; held 202, in use 303, idle 404, "
        "limit 505, free 606 of 707, largest idle block 808");
  CHECK(error.report().largest_idle_block == 808);
}

TEST_CASE("the message of a shortage says so where there is no limit") {
  pagesift::shortage_report report = numbered_report();
  report.limit = std::numeric_limits<std::size_t>::max();
  CHECK(contains(pagesift::out_of_memory{"host memory", report}.what(), "limit none,"));
}

TEST_CASE("a shortage of host memory is not called one of device memory") {
  const pagesift::out_of_memory error{"host memory", numbered_report()};
  CHECK(contains(error.what(), "out of host memory"));
  CHECK_FALSE(contains(error.what(), "device"));
}

TEST_CASE("the message of an overflow holds the size asked for") {
  CHECK(std::string{pagesift::size_overflow(18446744073709551615U, 1).what()} ==
        "pagesift: a request of 18446744073709551615 bytes does not fit the address space");
  CHECK(contains(pagesift::size_overflow(5, 16).what(), "5 elements of 16 bytes"));
}

TEST_CASE("the message of an alignment holds the alignment and the range") {
  CHECK(std::string{pagesift::invalid_alignment(3, 4096).what()} ==
        "pagesift: an alignment must be a power of two from 1 to 4096 bytes, got 3");
}

TEST_CASE("the message of a backend's failure holds call, code and text") {
  const pagesift::backend_error error{700, "cudaEventRecord", "an illegal memory access"};
  CHECK(std::string{error.what()} ==
        "pagesift: cudaEventRecord failed with code 700 (an illegal memory access)");
  CHECK(error.code() == 700);
}

TEST_CASE("the message of a refused capture holds the size and the reason") {
  CHECK(std::string{pagesift::capture_error{4096, "whose capture was invalidated"}.what()} ==
        "pagesift: a request of 4096 bytes named a stream whose capture was invalidated");
}

}  // namespace
