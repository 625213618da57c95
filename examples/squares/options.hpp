// The command line of squares.
#pragma once

#include <pagesift/pool/options.hpp>

#include <cstddef>
#include <optional>
#include <string>

namespace squares {

struct options {
  std::size_t n = 100'000'001;
  std::size_t rounds = 5;
  bool with_default = true;
  bool with_pool = true;
  std::size_t memory_limit_bytes = pagesift::no_limit;  // of the pool
  std::string json_file;                                // empty: none
};

/// What the command line asks for; or nothing, where all is said and `exit_code` remains.
struct command {
  std::optional<options> run;
  int exit_code = 0;
};

[[nodiscard]] command parse(int argc, char** argv);

}  // namespace squares
