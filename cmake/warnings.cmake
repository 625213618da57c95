# pagesift_warnings: for our own tests, examples and benchmarks; warnings are errors.

add_library(pagesift_warnings INTERFACE)

target_compile_options(pagesift_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Werror>)

# The C++ that nvcc generates for the host compiler breaks -Wpedantic and -Wconversion.
if(pagesift_has_nvcc)
  target_compile_options(pagesift_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Wall,-Wextra,-Werror>)
endif()
