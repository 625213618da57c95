# What tests, examples and benchmarks use beside the library. Distributions ship these as packages;
# the files alone will do as well. What is not found gets no target, and what needs it is left out.

function(pagesift_find_header target header package)
  if(NOT TARGET ${target})
    find_path(PAGESIFT_${package}_INCLUDE_DIR ${header} DOC "The folder that holds ${header}")
    mark_as_advanced(PAGESIFT_${package}_INCLUDE_DIR)
    if(PAGESIFT_${package}_INCLUDE_DIR)
      add_library(${target} INTERFACE IMPORTED GLOBAL)
      target_include_directories(${target} INTERFACE ${PAGESIFT_${package}_INCLUDE_DIR})
    endif()
  endif()
endfunction()

function(pagesift_find_benchmark)
  find_path(PAGESIFT_BENCHMARK_INCLUDE_DIR benchmark/benchmark.h)
  find_library(PAGESIFT_BENCHMARK_LIBRARY benchmark)
  mark_as_advanced(PAGESIFT_BENCHMARK_INCLUDE_DIR PAGESIFT_BENCHMARK_LIBRARY)
  if(PAGESIFT_BENCHMARK_INCLUDE_DIR AND PAGESIFT_BENCHMARK_LIBRARY)
    add_library(benchmark::benchmark UNKNOWN IMPORTED GLOBAL)
    set_target_properties(benchmark::benchmark PROPERTIES
      IMPORTED_LOCATION ${PAGESIFT_BENCHMARK_LIBRARY})
    target_include_directories(benchmark::benchmark INTERFACE ${PAGESIFT_BENCHMARK_INCLUDE_DIR})
    target_link_libraries(benchmark::benchmark INTERFACE Threads::Threads)
  endif()
endfunction()

pagesift_find_header(doctest::doctest doctest/doctest.h doctest-dev)
pagesift_find_header(nlohmann_json::nlohmann_json nlohmann/json.hpp nlohmann-json3-dev)
pagesift_find_header(CLI11::CLI11 CLI/CLI.hpp libcli11-dev)
pagesift_find_benchmark()
