#include <pagesift/core/statistics.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <string>

namespace {

// Every counter gets a value of its own, so that a swapped pair is seen.
pagesift::pool_stats numbered_stats() {
  pagesift::pool_stats s;
  s.held = 1;
  s.in_use = 2;
  s.idle = 3;
  s.captured = 16;
  s.peak_held = 4;
  s.peak_in_use = 5;
  s.largest_idle_block = 6;
  s.hits = 7;
  s.misses = 8;
  s.backend_allocations = 9;
  s.backend_releases = 10;
  s.events_recorded = 11;
  s.stream_waits = 12;
  s.fences = 13;
  s.rejected_frees = 14;
  s.streams = 15;
  s.live_events = std::numeric_limits<std::size_t>::max();
  s.classes.push_back({0, 256, 512, 2, 21, 22});
  s.classes.push_back({9, 2560, 0, 0, 23, 24});
  return s;
}

TEST_CASE("statistics as JSON hold every counter under its member's name") {
  const auto json = nlohmann::json::parse(numbered_stats().to_json());
  const nlohmann::json expected = {{"held", 1},
                                   {"in_use", 2},
                                   {"idle", 3},
                                   {"captured", 16},
                                   {"peak_held", 4},
                                   {"peak_in_use", 5},
                                   {"largest_idle_block", 6},
                                   {"hits", 7},
                                   {"misses", 8},
                                   {"backend_allocations", 9},
                                   {"backend_releases", 10},
                                   {"events_recorded", 11},
                                   {"stream_waits", 12},
                                   {"fences", 13},
                                   {"rejected_frees", 14},
                                   {"streams", 15},
                                   {"live_events", std::numeric_limits<std::size_t>::max()},
                                   {"classes",
                                    {{{"index", 0},
                                      {"block_bytes", 256},
                                      {"in_use_bytes", 512},
                                      {"in_use_blocks", 2},
                                      {"hits", 21},
                                      {"misses", 22}},
                                     {{"index", 9},
                                      {"block_bytes", 2560},
                                      {"in_use_bytes", 0},
                                      {"in_use_blocks", 0},
                                      {"hits", 23},
                                      {"misses", 24}}}}};
  CHECK(json == expected);
}

TEST_CASE("statistics of a pool that was never asked are JSON with no class") {
  const auto json = nlohmann::json::parse(pagesift::pool_stats{}.to_json());
  CHECK(json.at("held") == 0);
  CHECK(json.at("classes").is_array());
  CHECK(json.at("classes").empty());
}

TEST_CASE("statistics as text give each counter a line of name and value") {
  const std::string text = numbered_stats().to_text();
  CHECK(text.find("held                 1\n") == 0);
  CHECK(text.find("\nlive_events          18446744073709551615\n") != std::string::npos);
}

TEST_CASE("statistics as text give each class a line") {
  const std::string text = numbered_stats().to_text();
  CHECK(text.find("\nclass of 256 bytes: 2 blocks in use, 21 hits, 22 misses\n") !=
        std::string::npos);
  CHECK(text.find("\nclass of 2560 bytes: 0 blocks in use, 23 hits, 24 misses\n") !=
        std::string::npos);
}

}  // namespace
