#pragma once

#include "../trace.hpp"

#include <string>

namespace bench {

/// Registers the workload `replay` of one trace, which is called `argument` in the results.
void register_replay(const std::string& argument, const trace& recorded);

}  // namespace bench
