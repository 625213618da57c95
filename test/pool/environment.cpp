// The environment decides what a pool's options leave open.
#include "world.hpp"

#include <cstdlib>
#include <optional>
#include <string>

namespace {

/// Sets PAGESIFT_CHECKS while it lives.
class checks_variable {
 public:
  explicit checks_variable(const char* value) { setenv("PAGESIFT_CHECKS", value, 1); }
  ~checks_variable() { unsetenv("PAGESIFT_CHECKS"); }
  checks_variable(const checks_variable&) = delete;
  checks_variable& operator=(const checks_variable&) = delete;
};

pagesift::checks checks_of(const pool_options& options) {
  pagesift::simulated_device device;
  return simulated_pool{pagesift::simulated_backend{device}, options}.options().checks;
}

}  // namespace

TEST_CASE("a pool without a word about checks has the standard ones") {
  unsetenv("PAGESIFT_CHECKS");
  CHECK(checks_of({}) == pagesift::checks::standard);
  const checks_variable empty{""};
  CHECK(checks_of({}) == pagesift::checks::standard);
}

TEST_CASE("PAGESIFT_CHECKS says what pools check whose options do not") {
  {
    const checks_variable set{"standard"};
    CHECK(checks_of({}) == pagesift::checks::standard);
  }
  {
    const checks_variable set{"trusted"};
    CHECK(checks_of({}) == pagesift::checks::trusted);
  }
  const checks_variable set{"full"};
  CHECK(checks_of({}) == pagesift::checks::full);
}

TEST_CASE("options that say what to check are stronger than PAGESIFT_CHECKS") {
  const checks_variable set{"full"};
  pool_options options;
  options.checks = pagesift::checks::standard;
  CHECK(checks_of(options) == pagesift::checks::standard);
}

TEST_CASE("a value of PAGESIFT_CHECKS that does not exist is refused with those that do") {
  const checks_variable set{"ful"};
  std::string what;
  try {
    (void)checks_of({});
  } catch (const pagesift::invalid_argument& e) {
    what = e.what();
  }
  CHECK(what ==
        "pagesift: the environment variable PAGESIFT_CHECKS must be one of standard, trusted, "
        "full, got ful");
}
