// Plays random operations, with faults planted, on pools of simulated devices whose vector clocks
// judge every block handed out. Prints what was done and what was wrong; exit code 1 if anything
// was.
#include "../fuzz/player.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

struct totals {
  std::atomic<std::uint64_t> operations{0};
  std::atomic<std::uint64_t> faults{0};
  std::atomic<std::uint64_t> shortages{0};
  std::atomic<std::uint64_t> captures{0};
  std::atomic<std::uint64_t> launches{0};
  std::atomic<std::uint64_t> scenes{0};
  std::atomic<std::uint64_t> violations{0};
  std::atomic<std::uint64_t> lost_bytes{0};
};

struct arguments {
  std::uint64_t operations = 1'000'000;
  std::uint64_t seed = 1;
  unsigned threads = 1;
  double progress_seconds = 10;
};

constexpr std::uint64_t operations_of_a_scene = 20'000;

constexpr const char* usage =
    "usage: pagesift_simulated_stress [--operations N] [--threads N] [--seed N] [--progress "
    "SECONDS]\n";

std::mutex output;

void complain(std::uint64_t seed, std::uint64_t operation, const std::vector<std::string>& all) {
  const std::lock_guard lock{output};
  for (const std::string& complaint : all) {
    std::printf("seed %llu, operation %llu: %s\n", static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(operation), complaint.c_str());
  }
}

/// One scene from beginning to end: its pools, its device and its streams are new.
void play_one(std::uint64_t seed, std::uint64_t operations, totals& sum) {
  fuzz::random_choices by{seed};
  fuzz::player player{by};
  bool sound = true;
  for (std::uint64_t i = 0; i < operations && sound; ++i) {
    sound = player.step();
  }
  if (sound) {
    player.finish();
  }
  const std::vector<std::string> complaints = player.state().complaints();
  complain(seed, player.operations(), complaints);
  sum.faults += player.faults();
  sum.shortages += player.shortages();
  sum.captures += player.graphs().captures();
  sum.launches += player.graphs().launches();
  sum.violations += complaints.size();
  sum.lost_bytes += player.lost_bytes();
  ++sum.scenes;
}

void play_many(const arguments& asked, std::atomic<std::uint64_t>& next, totals& sum) {
  while (true) {
    const std::uint64_t scene = next++;
    const std::uint64_t before = scene * operations_of_a_scene;
    if (before >= asked.operations) {
      return;
    }
    const std::uint64_t operations = std::min(operations_of_a_scene, asked.operations - before);
    play_one(asked.seed + scene, operations, sum);
    sum.operations += operations;
  }
}

void print(const totals& sum, double seconds) {
  const std::lock_guard lock{output};
  const auto of = [](const std::atomic<std::uint64_t>& n) {
    return static_cast<unsigned long long>(n.load());
  };
  std::printf(
      "%llu operations in %llu scenes, %llu captures, %llu launches, %llu faults, %llu shortages: "
      "%llu violations, %llu lost "
      "bytes; %.0f s\n",
      of(sum.operations), of(sum.scenes), of(sum.captures), of(sum.launches), of(sum.faults),
      of(sum.shortages), of(sum.violations), of(sum.lost_bytes), seconds);
  std::fflush(stdout);
}

[[noreturn]] void say_usage() {
  std::fputs(usage, stderr);
  std::exit(2);
}

arguments parsed(int argc, char** argv) {
  arguments asked;
  for (int i = 1; i < argc; i += 2) {
    char* end = nullptr;
    const double value = i + 1 < argc ? std::strtod(argv[i + 1], &end) : -1;
    if (end == nullptr || *end != '\0' || value < 0) {
      say_usage();
    }
    const std::string name = argv[i];
    if (name == "--operations") {
      asked.operations = static_cast<std::uint64_t>(value);
    } else if (name == "--threads") {
      asked.threads = static_cast<unsigned>(value);
    } else if (name == "--seed") {
      asked.seed = static_cast<std::uint64_t>(value);
    } else if (name == "--progress") {
      asked.progress_seconds = value;
    } else {
      say_usage();
    }
  }
  return asked;
}

}  // namespace

int main(int argc, char** argv) {
  const arguments asked = parsed(argc, argv);
  const auto began = std::chrono::steady_clock::now();
  const auto elapsed = [began] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  totals sum;
  std::atomic<std::uint64_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(asked.threads, 1U); ++i) {
    threads.emplace_back([&] { play_many(asked, next, sum); });
  }
  double told = 0;
  while (sum.operations < asked.operations) {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    if (elapsed() - told >= asked.progress_seconds) {
      told = elapsed();
      print(sum, told);
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  print(sum, elapsed());
  return sum.violations == 0 && sum.lost_bytes == 0 ? 0 : 1;
}
