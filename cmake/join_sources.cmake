# pagesift_join_sources(<result> <name> file...)
#
# Writes the source file `name`, which includes the others, and sets `result` to it. Sources that
# read large headers are compiled faster so. CMake's own unity builds know CUDA from 3.31 on.
include_guard(GLOBAL)

function(pagesift_join_sources result name)
  set(content "")
  foreach(source IN LISTS ARGN)
    get_filename_component(source ${source} ABSOLUTE)
    string(APPEND content "#include \"${source}\"\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name} CONTENT "${content}" @ONLY)
  set(${result} ${CMAKE_CURRENT_BINARY_DIR}/${name} PARENT_SCOPE)
endfunction()
