# Builds everything of ours with the sanitizers of PAGESIFT_SANITIZE; a finding ends the program.

if(PAGESIFT_SANITIZE)
  add_compile_options(
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${PAGESIFT_SANITIZE}>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=${PAGESIFT_SANITIZE})
endif()
