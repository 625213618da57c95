#include "options.hpp"

#include <pagesift/core/bytes.hpp>

#include <CLI/CLI.hpp>

#include <charconv>
#include <iostream>
#include <limits>

namespace squares {
namespace {

/// Accepts a whole number from `least` to `most`, written in digits alone.
CLI::Validator whole_number(std::size_t least, std::size_t most) {
  return CLI::Validator{[least, most](const std::string& text) {
                          std::size_t value = 0;
                          const char* const end = text.data() + text.size();
                          const auto [stop, error] = std::from_chars(text.data(), end, value);
                          const bool good = error == std::errc{} && stop == end && value >= least &&
                                            value <= most;
                          return good ? std::string{}
                                      : "needs a whole number from " + std::to_string(least) +
                                            " to " + std::to_string(most) + ", got " + text;
                        },
                        ""};
}

void add_options(CLI::App& app, options& chosen, std::string& allocator) {
  constexpr std::size_t most_bytes = std::numeric_limits<std::ptrdiff_t>::max();
  app.add_option("--n", chosen.n, "numbers to square in each call")
      ->check(whole_number(1, most_bytes / sizeof(double)))
      ->capture_default_str();
  app.add_option("--rounds", chosen.rounds, "rounds of the job that squares in place")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--allocator", allocator, "pool, default, or both")
      ->check(CLI::IsMember{{"pool", "default", "both"}})
      ->capture_default_str();
  app.add_option("--memory-limit", chosen.memory_limit_bytes,
                 "bytes the pool may hold, at least 2097152")
      ->check(whole_number(2 * pagesift::mebibyte, most_bytes));
  app.add_option("--json", chosen.json_file, "write the results to this file, too");
}

}  // namespace

command parse(int argc, char** argv) {
  CLI::App app{"Squares large arrays on the device, with Thrust's default allocator and a pool."};
  options chosen;
  std::string allocator = "both";
  add_options(app, chosen, allocator);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return {std::nullopt, app.exit(help)};
  } catch (const CLI::ParseError& error) {
    std::cerr << "squares: " << error.what() << '\n';
    return {std::nullopt, 2};
  }
  chosen.with_default = allocator != "pool";
  chosen.with_pool = allocator != "default";
  return {chosen, 0};
}

}  // namespace squares
