# Writes the CTest tests of one doctest program: cmake -D program= -D name= -D gpu= -D output= -P
#
# doctest's own module is not used: distributions ship it or not, and it splits names at commas.

execute_process(
  COMMAND ${program} --list-test-cases --no-version --no-colors
  OUTPUT_VARIABLE listing
  RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${program} does not list its test cases (${result}):\n${listing}")
endif()

set(properties "FAIL_REGULAR_EXPRESSION [[test cases: +0 ]]")
if(gpu)
  string(APPEND properties " SKIP_RETURN_CODE 77 LABELS gpu RESOURCE_LOCK gpu")
endif()

set(script "")
set(seen "")
while(listing MATCHES "^([^\n]*)\n(.*)$")
  set(test_case "${CMAKE_MATCH_1}")
  set(listing "${CMAKE_MATCH_2}")
  if(test_case MATCHES "^(\\[doctest\\]|=====|$)")
    continue()
  endif()
  # In a filter a comma separates, and ? stands for any one character.
  string(REGEX REPLACE "[,\\]" "?" filter "${test_case}")
  string(FIND "${seen}" "\n${filter}\n" position)
  if(NOT position EQUAL -1)
    message(FATAL_ERROR "${program} has two test cases named \"${test_case}\"")
  endif()
  string(APPEND seen "\n${filter}\n")
  string(APPEND script
    "add_test([==[${name}: ${test_case}]==] [==[${program}]==] [==[--test-case=${filter}]==])\n"
    "set_tests_properties([==[${name}: ${test_case}]==] PROPERTIES ${properties})\n")
endwhile()

if(script STREQUAL "")
  message(FATAL_ERROR "${program} has no test case")
endif()
file(WRITE ${output} "${script}")
