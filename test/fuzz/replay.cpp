// Replays the corpus of the fuzzer, without a fuzzer; and long random inputs, which libFuzzer's own
// short ones seldom reach.
#include "player.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace {

std::vector<std::filesystem::path> corpus() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator{PAGESIFT_FUZZ_CORPUS}) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::uint8_t> bytes_of(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{}};
}

/// A pool that is told nothing wrong, on a device whose budget is `budget`.
fuzz::scene_options plain_scene() {
  fuzz::scene_options options;
  options.device.on_blocked_wait = pagesift::blocked_wait::opens_gates;
  return options;
}

}  // namespace

TEST_CASE("every input of the corpus plays without a complaint") {
  const auto files = corpus();
  CHECK(files.size() >= 20);
  for (const auto& file : files) {
    const std::vector<std::uint8_t> bytes = bytes_of(file);
    fuzz::byte_choices by{bytes.data(), bytes.size()};
    for (const std::string& complaint : fuzz::play(by, 1U << 20U)) {
      FAIL_CHECK(file.filename().string() << ": " << complaint);
    }
  }
}

TEST_CASE("long random inputs play without a complaint") {
  for (std::uint64_t seed = 1; seed <= PAGESIFT_FUZZ_INPUTS; ++seed) {
    fuzz::random_choices by{seed};
    for (const std::string& complaint : fuzz::play(by, 3000)) {
      FAIL_CHECK("seed " << seed << ": " << complaint);
    }
  }
}

TEST_CASE("choices by bytes take as many bytes as the bound needs, and are 0 in the end") {
  const std::uint8_t bytes[] = {5, 1, 2, 7};
  fuzz::byte_choices by{bytes, sizeof bytes};
  CHECK(by.below(1) == 0);
  CHECK(by.below(4) == 1);
  CHECK(by.below(1000) == 258);
  CHECK(by.more());
  CHECK(by.below(256) == 7);
  CHECK_FALSE(by.more());
  CHECK(by.below(1000) == 0);
}

TEST_CASE("a scene notices counts that are not those of its users") {
  fuzz::random_choices by{1};
  fuzz::scene scene{plain_scene()};
  const pagesift::simulated_backend backend{scene.device};
  scene.pools[0].pool = std::make_unique<fuzz::pool_type>(backend, pagesift::pool_options{});
  void* const p = scene.pools[0].pool->allocate(1000, scene.streams[0].handle);
  scene.device.hand_out(scene.streams[0].handle, p, 1000);
  SUBCASE("a block that it does not know of") { scene.compare_counts(); }
  SUBCASE("a free that it does not know to be rejected") {
    scene.note_live({p, 1000, 0, 0});
    scene.compare_counts();
    CHECK(scene.sound());
    int local = 0;
    scene.pools[0].pool->deallocate(&local, 4, scene.streams[0].handle);
    scene.compare_counts();
  }
  SUBCASE("a violation that the judge saw") {
    scene.device.hand_out(scene.streams[0].handle, p, 1000);
  }
  CHECK_FALSE(scene.sound());
  CHECK(scene.complaints().size() == 1);
}
