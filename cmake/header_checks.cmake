# Each header compiles by itself, and twice over: one tiny source file per header.
#
# A header is compiled with the least that it may ask for: the standard library, the CUDA Toolkit's
# headers, Thrust (by its CPP system), or nvcc. Where that is not there, the header is left out.

file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include
  ${PROJECT_SOURCE_DIR}/include/pagesift/*.hpp
  ${PROJECT_SOURCE_DIR}/include/pagesift/*.cuh)

function(pagesift_check_headers library suffix)
  if(NOT ARGN OR NOT TARGET pagesift::${library})
    return()
  endif()
  set(sources "")
  foreach(header IN LISTS ARGN)
    set(source ${PROJECT_BINARY_DIR}/header_checks/${header}.${suffix})
    file(CONFIGURE OUTPUT ${source} CONTENT "#include <${header}>\n#include <${header}>\n")
    list(APPEND sources ${source})
  endforeach()
  add_library(pagesift_header_checks_${library}_${suffix} OBJECT ${sources})
  target_link_libraries(pagesift_header_checks_${library}_${suffix} PRIVATE
    pagesift::${library} pagesift_warnings)
  # With CCCL before 3.1 memory_resource.hpp wants it.
  target_compile_definitions(pagesift_header_checks_${library}_${suffix} PRIVATE
    LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE)
endfunction()

foreach(header IN LISTS headers)
  if(header MATCHES "\\.cuh$")
    list(APPEND nvcc_headers ${header})
  elseif(header MATCHES "/(backend|pool)/cuda|/memory_resource")
    list(APPEND cuda_headers ${header})
  elseif(header MATCHES "/adapters/|/pagesift\\.hpp$")
    list(APPEND thrust_headers ${header})
  else()
    list(APPEND plain_headers ${header})
  endif()
endforeach()

pagesift_check_headers(pagesift cpp ${plain_headers})
pagesift_check_headers(cuda cpp ${cuda_headers})
pagesift_check_headers(cpp cpp ${thrust_headers})
if(pagesift_has_nvcc)
  pagesift_check_headers(cuda cu ${nvcc_headers})
endif()
