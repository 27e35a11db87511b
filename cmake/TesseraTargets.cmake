# SPDX-License-Identifier: Apache-2.0
# The library targets:
#   tessera_flags     interface: warnings, sanitizers, private include paths, which backends there are
#   tessera_objects   the library's own code
#   tessera_kernels   generated code: embedded kernels, list of operations. Apart, so that a broken shader does not keep
#                     the C++ from compiling.
#   tessera_private   interface: tessera_flags and the libraries that the code uses
#   tessera_internal  interface: all objects with their private headers, for the tool, the tests and the benchmarks
#   tessera           the library, static or shared; the only one that is installed. Alias tessera::tessera.

set(TESSERA_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")
set(TESSERA_GENERATED_INCLUDE_DIR "${TESSERA_GENERATED_DIR}/include")

add_library(tessera_flags INTERFACE)
target_include_directories(
  tessera_flags
  INTERFACE "${PROJECT_SOURCE_DIR}/include" "${TESSERA_GENERATED_INCLUDE_DIR}" "${PROJECT_SOURCE_DIR}/src")
target_compile_definitions(
  tessera_flags
  INTERFACE TESSERA_HAVE_OPENCL=${TESSERA_HAVE_OPENCL} TESSERA_HAVE_VULKAN=${TESSERA_HAVE_VULKAN}
            TESSERA_HAVE_SHADERC=${TESSERA_HAVE_SHADERC} $<$<NOT:$<BOOL:${BUILD_SHARED_LIBS}>>:TESSERA_STATIC>)
target_compile_options(
  tessera_flags
  INTERFACE $<$<CXX_COMPILER_ID:GNU,Clang,AppleClang>:-Wall -Wextra $<$<BOOL:${TESSERA_WERROR}>:-Werror>>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # gcc 12 sees overlaps in std::string's operator+ that are not there (GCC bug 105651), and takes an atomic inside a
  # null check for an atomic at address null.
  target_compile_options(tessera_flags INTERFACE -Wno-restrict -Wno-stringop-overflow)
endif()
# gcc looks for garbage from 128 MiB on, a tenth of its time for files that take ten times that.
target_compile_options(tessera_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>)
# What most files take of the standard library, and more headers that the caller names, are parsed once for a target. None
# of our own are among them: an edit to one rebuilds what includes it and nothing else. -fpch-preprocess is for ccache,
# which also wants `sloppiness = pch_defines,time_macros`; CMAKE_DISABLE_PRECOMPILE_HEADERS=ON does without.
function(tessera_precompile target)
  target_precompile_headers(
    ${target} PRIVATE <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <cstddef> <cstdint> <cstdio> <cstring>
    <exception> <filesystem> <functional> <limits> <map> <memory> <mutex> <optional> <random> <set> <span> <sstream>
    <string> <string_view> <unordered_map> <utility> <variant> <vector> ${ARGN})
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endfunction()

# With TESSERA_UNITY files are compiled several at once, for most of what one costs is what all have in common: templates of
# the standard library and the records. What stays together is a folder of the target, for names in them are its own, but a
# way to compute an operation and what matches a pattern stand alone. Rooms of a family name things alike, and its namespace
# keeps them from other families: no two rooms of a unit share a namespace, and units have about as many files.
function(tessera_unite target)
  if(NOT TESSERA_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  set(rooms)
  foreach(source IN LISTS sources)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE path)
    cmake_path(GET path PARENT_PATH folder)
    if((ARGN AND path MATCHES "${ARGN}")
       OR (path MATCHES "^src/operations/[^/]+/[^/]+/" AND NOT path MATCHES "/(cases|oracle|moe/[a-z]+)/"))
      set(folder "${path}")
    elseif(path MATCHES "^(src/(base|device/vulkan))/")  # small subfolders, whose names differ
      set(folder "${CMAKE_MATCH_1}")
    endif()
    string(MAKE_C_IDENTIFIER "${folder}" room)
    if(NOT path MATCHES "^src/operations/")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP ${room})
      continue()
    endif()
    list(APPEND rooms ${room})
    list(APPEND files_${room} "${source}")
    # Of typed functions the namespace is tessera itself.
    file(STRINGS "${source}" namespaces REGEX "^namespace (tessera {|(tessera::)?operations::)")
    list(TRANSFORM namespaces REPLACE "^namespace ([a-z]+::)*([a-z_]+) {" "\\2")
    list(APPEND namespaces_of_${room} ${namespaces})
  endforeach()

  # The largest rooms first, each to the unit with fewest files among those without its namespaces.
  set(queue)
  set(units 0)
  list(REMOVE_DUPLICATES rooms)
  foreach(room IN LISTS rooms)
    list(REMOVE_DUPLICATES namespaces_of_${room})
    foreach(namespace IN LISTS namespaces_of_${room})
      list(APPEND rooms_of_${namespace} ${room})
      list(LENGTH rooms_of_${namespace} count)
      if(count GREATER units)
        set(units ${count})
      endif()
    endforeach()
    list(LENGTH files_${room} count)
    math(EXPR order "1000 - ${count}")
    list(APPEND queue "${order} ${room}")
  endforeach()
  list(SORT queue COMPARE NATURAL)
  foreach(entry IN LISTS queue)
    string(REGEX REPLACE ".* " "" room "${entry}")
    set(best 0)
    foreach(unit RANGE 1 ${units})
      set(names_alike FALSE)
      foreach(namespace IN LISTS namespaces_of_${room})
        if(namespace IN_LIST namespaces_in_${unit})
          set(names_alike TRUE)
        endif()
      endforeach()
      list(LENGTH files_in_${unit} count)
      if(NOT names_alike AND (best EQUAL 0 OR count LESS fewest))
        set(best ${unit})
        set(fewest ${count})
      endif()
    endforeach()
    if(best EQUAL 0)
      math(EXPR units "${units} + 1")
      set(best ${units})
    endif()
    list(APPEND namespaces_in_${best} ${namespaces_of_${room}})
    list(APPEND files_in_${best} ${files_${room}})
    set_source_files_properties(${files_${room}} PROPERTIES UNITY_GROUP rooms_${best})
  endforeach()
endfunction()

# For the tool and the tests, where compiling takes longer than running: templates of CLI11, GoogleTest and JSON.
add_library(tessera_quickly_compiled INTERFACE)
target_compile_options(tessera_quickly_compiled
                       INTERFACE $<$<AND:$<CXX_COMPILER_ID:GNU,Clang,AppleClang>,$<NOT:$<CONFIG:Debug>>>:-Og>)
target_link_libraries(tessera_flags INTERFACE Threads::Threads)
if(TESSERA_SANITIZE)
  set(TESSERA_SANITIZE_OPTIONS -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_compile_options(tessera_flags INTERFACE ${TESSERA_SANITIZE_OPTIONS})
  target_link_options(tessera_flags INTERFACE ${TESSERA_SANITIZE_OPTIONS})
endif()

# What the finished library links; the header-only dependencies stay out of it and so out of the exported package. The
# loaders of OpenCL and Vulkan are opened at run time: a machine without one starts.
set(TESSERA_LINK_LIBRARIES Threads::Threads ${CMAKE_DL_LIBS})
if(TESSERA_HAVE_SHADERC)
  list(APPEND TESSERA_LINK_LIBRARIES Shaderc::shaderc)
endif()

set(source_patterns)
foreach(folder IN ITEMS base kernel selection runtime conformance capi device/host)
  list(APPEND source_patterns "${PROJECT_SOURCE_DIR}/src/${folder}/*.cpp")
endforeach()
if(TESSERA_HAVE_OPENCL)
  list(APPEND source_patterns "${PROJECT_SOURCE_DIR}/src/device/opencl/*.cpp" "${PROJECT_SOURCE_DIR}/src/interop/opencl.cpp")
endif()
if(TESSERA_HAVE_VULKAN)
  list(APPEND source_patterns "${PROJECT_SOURCE_DIR}/src/device/vulkan/*.cpp" "${PROJECT_SOURCE_DIR}/src/interop/vulkan.cpp")
endif()
file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${source_patterns})
file(GLOB device_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/device/*.cpp")
list(APPEND sources ${device_sources})

# Usage requirements of code that sees Tessera's inside.
add_library(tessera_private INTERFACE)
target_link_libraries(tessera_private INTERFACE tessera_flags Eigen3::Eigen nlohmann_json::nlohmann_json
                                                ${TESSERA_LINK_LIBRARIES})
target_include_directories(tessera_private SYSTEM INTERFACE "${TESSERA_XXHASH_INCLUDE_DIR}")
if(TESSERA_HAVE_OPENCL)
  target_include_directories(tessera_private SYSTEM INTERFACE "${TESSERA_OPENCL_HPP_DIR}" ${OpenCL_INCLUDE_DIRS})
endif()
if(TESSERA_HAVE_VULKAN)
  target_include_directories(tessera_private SYSTEM INTERFACE ${Vulkan_INCLUDE_DIRS})
endif()

add_library(tessera_objects OBJECT ${sources})
target_link_libraries(tessera_objects PRIVATE tessera_private)
tessera_precompile(tessera_objects)

add_library(tessera_kernels OBJECT)
target_link_libraries(tessera_kernels PRIVATE tessera_flags)

add_library(tessera_internal INTERFACE)
target_sources(tessera_internal INTERFACE $<TARGET_OBJECTS:tessera_objects> $<TARGET_OBJECTS:tessera_kernels>)
target_link_libraries(tessera_internal INTERFACE tessera_private)

add_library(tessera $<TARGET_OBJECTS:tessera_objects> $<TARGET_OBJECTS:tessera_kernels>)
add_library(tessera::tessera ALIAS tessera)
target_compile_features(tessera PUBLIC cxx_std_20)
target_include_directories(
  tessera PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${TESSERA_GENERATED_INCLUDE_DIR}>
                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(tessera PRIVATE ${TESSERA_LINK_LIBRARIES})
# Before 1.0 a minor version may change the ABI, so it is part of the soname.
set_target_properties(
  tessera PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                     SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
if(NOT BUILD_SHARED_LIBS)
  target_compile_definitions(tessera PUBLIC TESSERA_STATIC)
elseif(UNIX AND NOT APPLE)
  # Hidden visibility alone leaves instantiations of std templates exported.
  target_link_options(tessera PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/tessera.map")
  set_property(TARGET tessera APPEND PROPERTY LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/tessera.map")
endif()
if(TESSERA_SANITIZE)
  target_link_options(tessera PUBLIC $<BUILD_INTERFACE:${TESSERA_SANITIZE_OPTIONS}>)
endif()

configure_file("${PROJECT_SOURCE_DIR}/cmake/templates/version.hpp.in"
               "${TESSERA_GENERATED_INCLUDE_DIR}/tessera/version.hpp" @ONLY)

function(tessera_print_summary)
  foreach(part IN ITEMS OPENCL VULKAN SHADERC)
    if(TESSERA_HAVE_${part})
      set(${part} yes)
    else()
      set(${part} no)
    endif()
  endforeach()
  get_property(modules GLOBAL PROPERTY TESSERA_MODULE_NAMES)
  list(LENGTH modules module_count)
  message(STATUS "tessera ${PROJECT_VERSION}: OpenCL ${OPENCL}, Vulkan ${VULKAN}, GLSL at run time ${SHADERC}, "
                 "${module_count} SPIR-V modules")
  get_property(skipped GLOBAL PROPERTY TESSERA_SKIPPED_TEXT)
  if(skipped AND NOT TESSERA_GLSLC)
    list(LENGTH skipped count)
    message(STATUS "tessera: skipped ${count} SPIR-V modules: glslc was not found")
    return()
  endif()
  if(TESSERA_GLSLC)
    message(STATUS "tessera: ${TESSERA_GLSLC} knows")
    get_property(extensions GLOBAL PROPERTY TESSERA_SHADER_EXTENSIONS)
    list(REMOVE_DUPLICATES extensions)
    list(SORT extensions)
    foreach(extension IN LISTS extensions)
      tessera_glslc_knows(known ${extension})
      if(known)
        message(STATUS "tessera:   yes  ${extension}")
      else()
        message(STATUS "tessera:   no   ${extension}")
      endif()
    endforeach()
  endif()
  foreach(line IN LISTS skipped)
    message(STATUS "tessera: skipped ${line}")
  endforeach()
endfunction()
