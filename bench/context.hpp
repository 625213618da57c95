// What the results' context says about the machine and the build.
#pragma once

#include <string>

namespace bench {

/// Adds GPU, driver, CUDA version and commit to the context of the results.
void add_context(int argc, char** argv);

/// Why no benchmark can run on this machine; empty where they can.
[[nodiscard]] std::string missing_device();

}  // namespace bench
