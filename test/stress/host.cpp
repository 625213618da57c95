// The run that pagesift_stress makes on a GPU, made on host memory: there it can be tested itself.
#include "stress_run.hpp"

#include <pagesift/pool/host_pool.hpp>

#include <doctest/doctest.h>

namespace {

/// The host as a machine; its work is done when the call returns.
class host_machine {
 public:
  using pool_type = pagesift::host_pool;
  using stream_type = pagesift::host_stream;

  explicit host_machine(bool spoils = false) : spoils_{spoils} {}

  stream_type make_stream() { return {}; }
  void destroy_stream(stream_type) {}
  void synchronize(stream_type) {}
  void order(stream_type, stream_type) {}

  void fill(void* p, std::size_t bytes, unsigned value, stream_type) {
    auto* const words = static_cast<unsigned*>(p);
    std::fill_n(words, bytes / 4, value);
    words[0] += spoils_ && ++fills_ % 100 == 0 ? 1 : 0;
  }
  void check(const void* p, std::size_t bytes, unsigned value, stream_type) {
    const auto* const words = static_cast<const unsigned*>(p);
    mismatches_ +=
        bytes / 4 - static_cast<std::size_t>(std::count(words, words + bytes / 4, value));
  }
  [[nodiscard]] std::uint64_t mismatches() const { return mismatches_; }

 private:
  bool spoils_;
  std::atomic<std::uint64_t> fills_{0};
  std::atomic<std::uint64_t> mismatches_{0};
};

stress::settings small_run() {
  stress::settings asked;
  asked.operations = 3000;
  asked.threads = 4;
  asked.largest = 1 << 20;
  asked.live_bytes = 16 << 20;
  return asked;
}

void run_on_host(host_machine& machine, stress::result& r) {
  pagesift::host_pool pool;
  pagesift::pool_options small;
  small.limit_bytes = 4 << 20;
  pagesift::host_pool limited{small};
  stress::run<host_machine>{machine, {&pool, &limited}, small_run()}(r);
  for (pagesift::host_pool* p : {&pool, &limited}) {
    CHECK(p->stats().in_use == 0);
    p->trim();
    CHECK(p->stats().held == 0);
  }
}

}  // namespace

TEST_CASE("threads under stress find their patterns in host memory, and nothing fails") {
  host_machine machine;
  stress::result r;
  run_on_host(machine, r);
  CHECK(r.operations == 4 * 3000);
  CHECK(r.disturbances > 0);
  CHECK(r.shortages > 0);
  CHECK(r.mismatches == 0);
  CHECK(r.failures == 0);
  CHECK(stress::summary(small_run(), r, true).find("\"mismatches\": 0") != std::string::npos);
}

TEST_CASE("a word that is spoiled under stress is a mismatch") {
  host_machine machine{true};
  stress::result r;
  run_on_host(machine, r);
  CHECK(r.mismatches > 0);
}
