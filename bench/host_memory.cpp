// What the host backend's ways to get memory cost: its first use, with the giving back, and random
// access afterwards. docs/decisions/0010-huge-pages-on-the-host.md has the figures.
#include <pagesift/backend/host_memory.hpp>

#include <benchmark/benchmark.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <sys/mman.h>

namespace {

using pagesift::mebibyte;

/// 50,000,000 doubles, in whole pages of 2 MiB.
constexpr std::size_t bytes = 382 * mebibyte;
constexpr std::size_t doubles = 50'000'000;

/// The backend's memory with the advice `Advice` on top, of which the last about huge pages holds.
template <int Advice>
struct advised {
  [[nodiscard]] static pagesift::status acquire(std::size_t length, void*& p) noexcept {
    const pagesift::status result = pagesift::host_memory::acquire(length, p);
    if (result.ok() && ::madvise(p, length, Advice) != 0) {
      (void)pagesift::host_memory::release(p, length);
      return {pagesift::outcome::failed, errno, "madvise"};
    }
    return result;
  }
  static pagesift::status release(void* p, std::size_t length) noexcept {
    return pagesift::host_memory::release(p, length);
  }
};
using small_pages = advised<MADV_NOHUGEPAGE>;
#ifdef MADV_POPULATE_WRITE
using populated = advised<MADV_POPULATE_WRITE>;
#endif

template <typename Source>
class piece {
 public:
  piece() {
    void* p = nullptr;
    if (!Source::acquire(bytes, p).ok()) {
      throw std::bad_alloc{};
    }
    data_ = static_cast<double*>(p);
  }
  piece(const piece&) = delete;
  piece& operator=(const piece&) = delete;
  ~piece() { (void)Source::release(data_, bytes); }

  [[nodiscard]] double* data() const noexcept { return data_; }

 private:
  double* data_ = nullptr;
};

void fill(double* out) {
#pragma omp parallel for
  for (std::size_t i = 0; i < doubles; ++i) {
    out[i] = 3;
  }
}

/// Takes the memory, writes all of it once, and gives it back.
template <typename Source>
void first_use(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) {
    const piece<Source> fresh;
    fill(fresh.data());
    benchmark::ClobberMemory();
  }
}

/// Writes all of the memory once more.
template <typename Source>
void reuse(benchmark::State& state) {
  const piece<Source> kept;
  fill(kept.data());
  for ([[maybe_unused]] auto _ : state) {
    fill(kept.data());
    benchmark::ClobberMemory();
  }
}

/// Reads 10,000,000 elements at scrambled places.
template <typename Source>
void random_reads(benchmark::State& state) {
  const piece<Source> kept;
  fill(kept.data());
  const double* const data = kept.data();
  for ([[maybe_unused]] auto _ : state) {
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (std::uint32_t i = 0; i < 10'000'000; ++i) {
      sum += data[(i * std::uint64_t{0x9e3779b97f4a7c15} >> 20) % doubles];
    }
    benchmark::DoNotOptimize(sum);
  }
}

template <typename Source>
void add(const char* name) {
  const auto label = [&](const char* what) { return std::string{what} + '/' + name; };
  for (benchmark::internal::Benchmark* one :
       {benchmark::RegisterBenchmark(label("first_use").c_str(), first_use<Source>),
        benchmark::RegisterBenchmark(label("reuse").c_str(), reuse<Source>),
        benchmark::RegisterBenchmark(label("random_reads").c_str(), random_reads<Source>)}) {
    one->UseRealTime()->Unit(benchmark::kMillisecond);
  }
}

}  // namespace

int main(int argc, char** argv) {
  add<pagesift::heap_memory>("heap");
  add<small_pages>("mapped_small");
  add<pagesift::host_memory>("mapped_huge");
#ifdef MADV_POPULATE_WRITE
  add<populated>("mapped_huge_populated");
#endif
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
