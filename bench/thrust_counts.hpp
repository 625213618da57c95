// The array lengths of the Thrust and CUB workloads over int.
#pragma once

#include "registration.hpp"

#include <benchmark/benchmark.h>

#include <cstddef>
#include <string>

namespace bench {

/// Registers `workload` for each allocator of `list` and each length; `body(state, allocator,
/// count)` runs it.
template <typename List, typename Body>
void add_thrust_counts(List list, const std::string& workload, Body body) {
  for_each_allocator(list, [&](auto one) { add_lengths(one, workload, body); });
}

template <typename Allocator, typename Body>
void add_lengths(allocator_list<Allocator>, const std::string& workload, Body body) {
  for (const std::size_t count : {1'000, 100'000, 10'000'000}) {
    add<Allocator>(workload, std::to_string(count),
                   [body, count](benchmark::State& state, Allocator& allocator) {
                     body(state, allocator, count);
                   });
  }
}

}  // namespace bench
