# Install rules: headers, and a package for find_package(pagesift).

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/pagesift)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/pagesift
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN *.hpp PATTERN *.cuh)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(TARGETS pagesift EXPORT pagesift INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT pagesift
  FILE pagesiftTargets.cmake
  NAMESPACE pagesift::
  DESTINATION ${package_dir})

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/pagesiftConfig.cmake.in
  ${PROJECT_BINARY_DIR}/pagesiftConfig.cmake
  INSTALL_DESTINATION ${package_dir}
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/pagesiftConfigVersion.cmake
  COMPATIBILITY SameMinorVersion
  ARCH_INDEPENDENT)
install(FILES
  ${PROJECT_BINARY_DIR}/pagesiftConfig.cmake
  ${PROJECT_BINARY_DIR}/pagesiftConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/pagesift_systems.cmake
  DESTINATION ${package_dir})
