// What libFuzzer calls with each input: a list of operations on pools of a simulated device.
#include "player.hpp"

#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  fuzz::byte_choices by{data, bytes};
  const std::vector<std::string> complaints = fuzz::play(by, 1U << 20U);
  for (const std::string& complaint : complaints) {
    std::fprintf(stderr, "pagesift: %s\n", complaint.c_str());
  }
  if (!complaints.empty()) {
    std::abort();
  }
  return 0;
}
