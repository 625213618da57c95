# Says in one sentence each what was looked for and not found, so that what is left out is known.

foreach(system cuda cpp omp tbb)
  if(pagesift_${system}_missing)
    message(NOTICE "pagesift: there is no pagesift::${system}: ${pagesift_${system}_missing}.")
  endif()
endforeach()

if(PAGESIFT_USE_NVCC AND NOT pagesift_has_nvcc)
  message(NOTICE "pagesift: no nvcc that works was found: what runs on a GPU is left out.")
endif()

foreach(target doctest::doctest nlohmann_json::nlohmann_json CLI11::CLI11 benchmark::benchmark)
  if(NOT TARGET ${target})
    message(NOTICE "pagesift: ${target} was not found: what needs it is left out.")
  endif()
endforeach()
