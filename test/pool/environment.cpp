// The environment decides what a pool's options leave open.
#include "world.hpp"

#include <pagesift/backend/host.hpp>

#include <cstdlib>
#include <string>

namespace {

/// Sets an environment variable while it lives.
class variable {
 public:
  variable(const char* name, const char* value) : name_{name} { setenv(name, value, 1); }
  ~variable() { unsetenv(name_); }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;

 private:
  const char* name_;
};

/// What is said of a call that refuses something; empty where it does not.
template <typename Call>
std::string refusal(Call&& call) {
  try {
    (void)call();
  } catch (const pagesift::invalid_argument& e) {
    return e.what();
  }
  return {};
}

/// The host's memory, of which each number has a default pool of its own.
template <int Number>
struct numbered_host : pagesift::host_backend {
  static numbered_host open(int) { return {}; }
};
template <int Number>
using numbered_pool = pagesift::basic_pool<numbered_host<Number>>;

pagesift::checks checks_of(const pool_options& options) {
  pagesift::simulated_device device;
  return simulated_pool{pagesift::simulated_backend{device}, options}.options().checks;
}

}  // namespace

TEST_CASE("a pool without a word about checks has the standard ones") {
  unsetenv("PAGESIFT_CHECKS");
  CHECK(checks_of({}) == pagesift::checks::standard);
  const variable empty{"PAGESIFT_CHECKS", ""};
  CHECK(checks_of({}) == pagesift::checks::standard);
}

TEST_CASE("PAGESIFT_CHECKS says what pools check whose options do not") {
  {
    const variable set{"PAGESIFT_CHECKS", "standard"};
    CHECK(checks_of({}) == pagesift::checks::standard);
  }
  {
    const variable set{"PAGESIFT_CHECKS", "trusted"};
    CHECK(checks_of({}) == pagesift::checks::trusted);
  }
  const variable set{"PAGESIFT_CHECKS", "full"};
  CHECK(checks_of({}) == pagesift::checks::full);
}

TEST_CASE("options that say what to check are stronger than PAGESIFT_CHECKS") {
  const variable set{"PAGESIFT_CHECKS", "full"};
  pool_options options;
  options.checks = pagesift::checks::standard;
  CHECK(checks_of(options) == pagesift::checks::standard);
}

TEST_CASE("a value of PAGESIFT_CHECKS that does not exist is refused with those that do") {
  const variable set{"PAGESIFT_CHECKS", "ful"};
  CHECK(refusal([] { return checks_of({}); }) ==
        "pagesift: the environment variable PAGESIFT_CHECKS must be one of standard, trusted, "
        "full, got ful");
}

TEST_CASE("without a word of the environment default pools have the default options") {
  const pool_options usual;
  const pool_options options = pagesift::default_pool_options();
  CHECK(options.limit_bytes == usual.limit_bytes);
  CHECK(options.initial_bytes == usual.initial_bytes);
  CHECK(options.backing == usual.backing);
  CHECK(options.announce == usual.announce);
}

TEST_CASE("a default pool takes its limit and what it starts with from the environment") {
  const variable limit{"PAGESIFT_LIMIT", "8MiB"};
  const variable initial{"PAGESIFT_INITIAL", "4194304"};
  auto& pool = numbered_pool<0>::default_pool();
  CHECK(pool.options().limit_bytes == 8 * mebibyte);
  CHECK(pool.stats().held == 4 * mebibyte);
  CHECK_THROWS_AS((void)pool.allocate(9 * mebibyte, {}), pagesift::out_of_memory);
}

TEST_CASE("only default pools take these from the environment") {
  const variable limit{"PAGESIFT_LIMIT", "8MiB"};
  CHECK(numbered_pool<1>{}.options().limit_bytes == pagesift::no_limit);
}

TEST_CASE("the environment says where default pools have their memory from, and who is told") {
  const variable announce{"PAGESIFT_ANNOUNCE", "1"};
  {
    const variable set{"PAGESIFT_BACKING", "plain"};
    CHECK(pagesift::default_pool_options().backing == pagesift::backing::plain);
    CHECK(pagesift::default_pool_options().announce);
  }
  {
    const variable set{"PAGESIFT_BACKING", "virtual_memory"};
    CHECK(pagesift::default_pool_options().backing == pagesift::backing::virtual_memory);
  }
  const variable set{"PAGESIFT_BACKING", "automatic"};
  CHECK(pagesift::default_pool_options().backing == pagesift::backing::automatic);
}

TEST_CASE("bytes in the environment are whole numbers with a binary unit") {
  const auto limit = [](const char* text) {
    const variable set{"PAGESIFT_LIMIT", text};
    return pagesift::default_pool_options().limit_bytes;
  };
  CHECK(limit("2097152") == 2 * mebibyte);
  CHECK(limit("2048KiB") == 2 * mebibyte);
  CHECK(limit("3GiB") == 3 * pagesift::gibibyte);
  CHECK(limit("2TiB") == 2048 * pagesift::gibibyte);
  CHECK(limit("18446744073709551615") == pagesift::no_limit);
  for (const char* text : {"8G", "8 GiB", " 8GiB", "8gib", "-1", "+8GiB", "1.5GiB", "GiB", "all",
                           "0x200000", "18446744073709551616", "17179869184GiB", "2097151"}) {
    CAPTURE(text);
    CHECK(refusal([&] { return limit(text); }) ==
          std::string{"pagesift: the environment variable PAGESIFT_LIMIT must be a number of bytes "
                      "such as 8589934592, 8192MiB or 8GiB, at least 2097152, got "} +
              text);
  }
}

TEST_CASE("a default pool whose environment makes no sense is not made, and is later") {
  {
    const variable set{"PAGESIFT_BACKING", "vmm"};
    CHECK(refusal([] { return &numbered_pool<2>::default_pool(); }) ==
          "pagesift: the environment variable PAGESIFT_BACKING must be one of automatic, "
          "virtual_memory, plain, got vmm");
  }
  {
    const variable set{"PAGESIFT_ANNOUNCE", "yes"};
    CHECK(refusal([] { return &numbered_pool<2>::default_pool(); }) ==
          "pagesift: the environment variable PAGESIFT_ANNOUNCE must be one of 0, 1, got yes");
  }
  CHECK(numbered_pool<2>::default_pool().options().backing == pagesift::backing::automatic);
}
