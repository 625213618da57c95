# pagesift::cuda, ::cpp, ::omp and ::tbb: pagesift::pagesift and what one Thrust system needs.
#
# Used by the build tree and, installed, by find_package(pagesift). A system that lacks something
# gets no target; pagesift_<system>_missing then says in a few words what it lacks.

include_guard(GLOBAL)

# The oldest CCCL with the interfaces that the adapters use is 2.8, which calls Thrust 2.8.
set(PAGESIFT_THRUST_VERSION_MIN 200800)

function(pagesift_add_systems)
  foreach(system IN LISTS ARGN)
    set(missing "")
    if(NOT TARGET pagesift::${system})
      cmake_language(CALL pagesift_add_${system})
    endif()
    set(pagesift_${system}_missing "${missing}" PARENT_SCOPE)
  endforeach()
endfunction()

macro(pagesift_add_cuda)
  find_package(CUDAToolkit 12.0 QUIET)
  if(CUDAToolkit_FOUND)
    pagesift_find_cccl()
    pagesift_new_system(cuda)
    target_include_directories(pagesift::cuda INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
    # The runtime that nvcc links by itself, so that a program never has two of them.
    set(runtime $<TARGET_PROPERTY:CUDA_RUNTIME_LIBRARY>)
    target_link_libraries(pagesift::cuda INTERFACE
      $<$<NOT:$<STREQUAL:${runtime},None>>:$<IF:$<STREQUAL:${runtime},Shared>,CUDA::cudart,CUDA::cudart_static>>)
    pagesift_make_global(CUDA::cudart CUDA::cudart_static CUDA::cudart_static_deps)
  else()
    set(missing "no CUDA Toolkit of version 12.0 or newer was found")
  endif()
endmacro()

macro(pagesift_add_cpp)
  pagesift_add_cpu_system(cpp CPP)
endmacro()

macro(pagesift_add_omp)
  find_package(OpenMP QUIET COMPONENTS CXX)
  if(OpenMP_CXX_FOUND)
    pagesift_add_cpu_system(omp OMP OpenMP::OpenMP_CXX)
  else()
    set(missing "OpenMP was not found")
  endif()
endmacro()

macro(pagesift_add_tbb)
  find_package(TBB QUIET)
  if(TBB_FOUND)
    pagesift_add_cpu_system(tbb TBB TBB::tbb)
  else()
    set(missing "TBB was not found")
  endif()
endmacro()

macro(pagesift_add_cpu_system system thrust_name)
  find_package(CUDAToolkit QUIET)
  pagesift_find_cccl()
  if(PAGESIFT_CCCL_INCLUDE_DIR)
    pagesift_new_system(${system})
    target_link_libraries(pagesift::${system} INTERFACE ${ARGN})
    target_compile_definitions(pagesift::${system} INTERFACE
      THRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_${thrust_name})
    pagesift_make_global(${ARGN})
  else()
    set(missing "Thrust of CCCL 2.8 or newer was not found (PAGESIFT_CCCL_INCLUDE_DIR)")
  endif()
endmacro()

function(pagesift_new_system system)
  add_library(pagesift::${system} INTERFACE IMPORTED GLOBAL)
  target_link_libraries(pagesift::${system} INTERFACE pagesift::pagesift)
  if(PAGESIFT_CCCL_INCLUDE_DIR)
    target_include_directories(pagesift::${system} INTERFACE ${PAGESIFT_CCCL_INCLUDE_DIR})
  endif()
endfunction()

# Sets the cache entry PAGESIFT_CCCL_INCLUDE_DIR: the folder that holds thrust/ and cub/. CUDA 13
# keeps them in include/cccl, CUDA 12 in include.
function(pagesift_find_cccl)
  set(places "")
  foreach(dir IN LISTS CUDAToolkit_INCLUDE_DIRS)
    list(APPEND places ${dir}/cccl ${dir})
  endforeach()
  find_path(PAGESIFT_CCCL_INCLUDE_DIR thrust/version.h HINTS ${places}
    DOC "The folder that holds CCCL's thrust/ and cub/")
  mark_as_advanced(PAGESIFT_CCCL_INCLUDE_DIR)
  if(PAGESIFT_CCCL_INCLUDE_DIR)
    pagesift_read_thrust_version(version)
    if(version LESS PAGESIFT_THRUST_VERSION_MIN)
      set(PAGESIFT_CCCL_INCLUDE_DIR "" PARENT_SCOPE)
    endif()
  endif()
endfunction()

# Sets `result` to the version of the Thrust in PAGESIFT_CCCL_INCLUDE_DIR: 300100 is 3.1.0.
function(pagesift_read_thrust_version result)
  file(STRINGS ${PAGESIFT_CCCL_INCLUDE_DIR}/thrust/version.h line
    REGEX "^#define THRUST_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+" version "${line}")
  set(${result} ${version} PARENT_SCOPE)
endfunction()

# Targets that a find_package call of this folder made are seen here alone; a parent project that
# links a pagesift target needs them too.
function(pagesift_make_global)
  foreach(target IN LISTS ARGN)
    if(TARGET ${target})
      get_target_property(made_in ${target} SOURCE_DIR)
      if(made_in STREQUAL CMAKE_CURRENT_SOURCE_DIR)
        set_target_properties(${target} PROPERTIES IMPORTED_GLOBAL TRUE)
      endif()
    endif()
  endforeach()
endfunction()
