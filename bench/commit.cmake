# Writes a header with the commit of the source tree: cmake -D source= -D output= -P commit.cmake

execute_process(
  COMMAND git -C ${source} describe --always --dirty --abbrev=12 --exclude=*
  OUTPUT_VARIABLE commit
  RESULT_VARIABLE result
  ERROR_QUIET
  OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT result EQUAL 0)
  set(commit unknown)
endif()

file(CONFIGURE OUTPUT ${output} CONTENT "#define PAGESIFT_BENCH_COMMIT \"@commit@\"\n" @ONLY)
