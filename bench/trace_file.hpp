// Traces in files: what a program asked of its allocator, one request or free to a line.
//
// A CSV file with a header. These columns are read, whatever their order and case; others, such as
// the thread and time that RMM's logging adaptor writes, are ignored:
//   op, or action    "allocate" or "free"; "allocate failure" is passed over
//   id, or pointer   names a block from its request to its free, and another one after that
//   bytes, or size   of a request
//   stream           may be missing; 0, 0x0 or nothing is the default stream, anything else a
//   stream
//                    of its own
#pragma once

#include "trace.hpp"

#include <string>

namespace bench {

/// Blocks that the file does not free are freed at the end, so that a trace can be replayed again.
/// \throws std::runtime_error that names the file, the line and what is wrong with it
[[nodiscard]] trace read_trace(const std::string& path);

}  // namespace bench
