# pagesift_add_test(<name> SOURCES file... [TOGETHER cpp|cu] [APART file...] [LIBRARIES target...]
#   [DEFINITIONS definition...] [GPU])
#
# One doctest program; each of its test cases is a test of CTest, named "<name>: <test case>".
# TOGETHER cpp or cu: the sources are compiled as one file of that kind, but for those APART. Reading
# the headers and making code of their templates takes most of the time: five tests of the pool
# compile in 9 s so, one of them alone in 8 s. No two of them may use a name for different things.
# GPU: the test is skipped, with exit code 77, where no device is. A program that needs a target or
# a compiler which is not there is left out; the configure step has said what is missing.

include(${CMAKE_CURRENT_LIST_DIR}/join_sources.cmake)

function(pagesift_add_test name)
  cmake_parse_arguments(arg "GPU" "TOGETHER" "SOURCES;APART;LIBRARIES;DEFINITIONS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "pagesift_add_test(${name}): unknown argument ${arg_UNPARSED_ARGUMENTS}")
  endif()
  foreach(library IN LISTS arg_LIBRARIES)
    if(library MATCHES "::" AND NOT TARGET ${library})
      return()
    endif()
  endforeach()
  if("${arg_SOURCES}" MATCHES "\\.cu(;|$)" AND NOT pagesift_has_nvcc)
    return()
  endif()

  set(target test_${name})
  if(arg_TOGETHER)
    pagesift_join_sources(arg_SOURCES ${target}.${arg_TOGETHER} ${arg_SOURCES})
  endif()
  add_executable(${target} ${arg_SOURCES} ${arg_APART})
  target_link_libraries(${target} PRIVATE
    ${arg_LIBRARIES} pagesift::pagesift pagesift_warnings
    $<IF:$<BOOL:${arg_GPU}>,pagesift_test_main_gpu,pagesift_test_main>)
  target_compile_definitions(${target} PRIVATE ${arg_DEFINITIONS})
  # Tests measure nothing; the strongest optimiser would take half as long again to build them.
  target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
  pagesift_discover_tests(${target} ${name} $<$<BOOL:${arg_GPU}>:GPU>)
endfunction()

# Asks the program for its test cases each time it has been built.
function(pagesift_discover_tests target name)
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${target}_tests.cmake)
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${CMAKE_COMMAND}
      -D program=$<TARGET_FILE:${target}> -D name=${name} -D gpu=${ARGV2} -D output=${list}
      -P ${PROJECT_SOURCE_DIR}/cmake/discover_tests.cmake
    BYPRODUCTS ${list}
    VERBATIM)
  # A program that was not built is a failed test, not a missing one.
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake
    "if(EXISTS [[${list}]])\n  include([[${list}]])\n"
    "else()\n  add_test([[${name}: not built]] [[${target} was not built]])\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES
    ${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake)
endfunction()
