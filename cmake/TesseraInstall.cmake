# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where: headers, library, CMake package, pkg-config file, tool.
include(CMakePackageConfigHelpers)

set(TESSERA_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/tessera")

get_property(left_out GLOBAL PROPERTY TESSERA_LEFT_OUT)
list(TRANSFORM left_out REPLACE "(.+)" "PATTERN;operations/\\1.hpp;EXCLUDE")
if(NOT TESSERA_HAVE_OPENCL)
  list(APPEND left_out PATTERN interop/opencl.hpp EXCLUDE)
endif()
if(NOT TESSERA_HAVE_VULKAN)
  list(APPEND left_out PATTERN interop/vulkan.hpp EXCLUDE)
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" "${TESSERA_GENERATED_INCLUDE_DIR}/"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT dev FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h" ${left_out})
install(TARGETS tessera EXPORT tesseraTargets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT dev
        RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT runtime)
install(EXPORT tesseraTargets NAMESPACE tessera:: DESTINATION "${TESSERA_CMAKE_DIR}" COMPONENT dev)
if(TARGET tessera_tool)
  install(TARGETS tessera_tool RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT tools)
endif()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
        DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT dev)

if(BUILD_SHARED_LIBS)
  set(TESSERA_IS_STATIC OFF)
else()
  set(TESSERA_IS_STATIC ON)
endif()
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/templates/tesseraConfig.cmake.in" "${PROJECT_BINARY_DIR}/tesseraConfig.cmake"
  INSTALL_DESTINATION "${TESSERA_CMAKE_DIR}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tesseraConfig.cmake" "${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake"
        DESTINATION "${TESSERA_CMAKE_DIR}" COMPONENT dev)
if(TESSERA_IS_STATIC AND TESSERA_HAVE_SHADERC)
  install(FILES "${PROJECT_SOURCE_DIR}/cmake/FindShaderc.cmake" DESTINATION "${TESSERA_CMAKE_DIR}"
          COMPONENT dev)
endif()

# pkg-config. A shared libtessera needs nothing else, neither to compile nor to link. With a static one every user links
# what it is made of, `--static` or not, so its needs are public: `pkg-config --cflags --libs tessera` works with both.
set(PC_LIBS "-pthread")
if(TESSERA_HAVE_SHADERC)
  # Not through shaderc.pc: see FindShaderc.cmake for why that does not link everywhere.
  foreach(library IN LISTS Shaderc_LIBRARIES)
    cmake_path(GET library PARENT_PATH folder)
    cmake_path(GET library STEM LAST_ONLY stem)
    if(folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
      string(REGEX REPLACE "^lib" " -l" library "${stem}")
    else()
      string(PREPEND library " ")
    endif()
    string(APPEND PC_LIBS "${library}")
  endforeach()
endif()
if(CMAKE_DL_LIBS)
  string(APPEND PC_LIBS " -l${CMAKE_DL_LIBS}")
endif()
if(TESSERA_IS_STATIC)
  set(PC_CFLAGS " -DTESSERA_STATIC")
  set(PC_LINES "Libs: -L\${libdir} -ltessera ${PC_LIBS}")
else()
  set(PC_CFLAGS "")
  set(PC_LINES "Libs: -L\${libdir} -ltessera")
endif()
# Relative to the file itself, so that an install tree can be moved and `cmake --install --prefix` can choose it.
set(PC_DIR "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH PC_PREFIX "/prefix/${PC_DIR}" "/prefix")
string(REGEX REPLACE "/$" "" PC_PREFIX "${PC_PREFIX}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/templates/tessera.pc.in" "${PROJECT_BINARY_DIR}/tessera.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tessera.pc" DESTINATION "${PC_DIR}" COMPONENT dev)
