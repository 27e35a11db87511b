# SPDX-License-Identifier: Apache-2.0
# Finds what the library is built from. Sets TESSERA_HAVE_OPENCL, TESSERA_HAVE_VULKAN, TESSERA_HAVE_SHADERC to 0 or 1,
# and TESSERA_GLSLC, TESSERA_SPIRV_VAL, TESSERA_CLANG to programs or to NOTFOUND.

# GLOBAL: a static library hands its imported targets on to whoever links it, in any directory of an enclosing project.
find_package(Threads REQUIRED GLOBAL)

# Headers only, and private: no public header names them.
function(tessera_require found what package)
  if(NOT ${found})
    message(FATAL_ERROR "tessera needs ${what} (Debian: ${package}); `sh tools/setup.sh` installs everything.")
  endif()
endfunction()

find_package(Eigen3 3.4 QUIET NO_MODULE)
tessera_require(Eigen3_FOUND "Eigen 3.4" libeigen3-dev)
find_package(nlohmann_json 3.11 QUIET)
tessera_require(nlohmann_json_FOUND "nlohmann-json 3.11" nlohmann-json3-dev)
find_path(TESSERA_XXHASH_INCLUDE_DIR xxhash.h)
mark_as_advanced(TESSERA_XXHASH_INCLUDE_DIR)
tessera_require(TESSERA_XXHASH_INCLUDE_DIR "xxHash" libxxhash-dev)

# An AUTO part is built when everything that it needs was found; an ON part that lacks something is an error.
function(tessera_decide option have what package)
  set(complete TRUE)
  foreach(needed IN LISTS ARGN)
    if(NOT ${needed})
      set(complete FALSE)
    endif()
  endforeach()
  set(choice "${${option}}")
  if(choice STREQUAL "AUTO")
    set(wanted ${complete})
  elseif(choice)
    set(wanted TRUE)
    if(NOT complete)
      message(FATAL_ERROR "${option}=ON, but ${what} was not found (Debian: ${package}).")
    endif()
  else()
    set(wanted FALSE)
  endif()
  if(wanted)
    set(${have} 1 PARENT_SCOPE)
  else()
    set(${have} 0 PARENT_SCOPE)
    if(choice STREQUAL "AUTO")
      message(STATUS "tessera: built without ${what}, which was not found (Debian: ${package})")
    endif()
  endif()
endfunction()

# CMake's own notion of false ("OFF", "0", "NO") is what skips the search: an OFF backend must not even be looked for.
if(TESSERA_OPENCL)
  find_package(OpenCL QUIET)
  find_path(TESSERA_OPENCL_HPP_DIR CL/opencl.hpp HINTS ${OpenCL_INCLUDE_DIRS})
  mark_as_advanced(TESSERA_OPENCL_HPP_DIR)
endif()
tessera_decide(TESSERA_OPENCL TESSERA_HAVE_OPENCL "the OpenCL loader with its C++ headers"
               "ocl-icd-opencl-dev opencl-clhpp-headers" OpenCL_FOUND TESSERA_OPENCL_HPP_DIR)

if(TESSERA_VULKAN)
  find_package(Vulkan QUIET)
endif()
tessera_decide(TESSERA_VULKAN TESSERA_HAVE_VULKAN "the Vulkan loader" "libvulkan-dev" Vulkan_FOUND)

# Without the Vulkan backend there is nothing that GLSL could run on.
if(TESSERA_SHADERC AND TESSERA_HAVE_VULKAN)
  find_package(Shaderc QUIET GLOBAL)
endif()
if(TESSERA_HAVE_VULKAN)
  tessera_decide(TESSERA_SHADERC TESSERA_HAVE_SHADERC "libshaderc" "libshaderc-dev" Shaderc_FOUND)
else()
  set(TESSERA_HAVE_SHADERC 0)
endif()

# What tools/newer.sh unpacked goes before the system's own.
execute_process(COMMAND sh "${PROJECT_SOURCE_DIR}/tools/newer.sh" path OUTPUT_VARIABLE newer ERROR_QUIET
                OUTPUT_STRIP_TRAILING_WHITESPACE)
# What an earlier run found is looked for again, for newer.sh may have run since; what the user named stays.
function(tessera_find_newest variable program doc)
  if("${${variable}}" STREQUAL "${${variable}_FOUND}")
    unset(${variable} CACHE)
  endif()
  if(NOT DEFINED ${variable})
    find_program(${variable} ${program} HINTS "${newer}/glslc/bin" DOC "${doc}")
    set(${variable}_FOUND "${${variable}}" CACHE INTERNAL "what find_program() found")
  endif()
endfunction()
tessera_find_newest(TESSERA_GLSLC glslc "Compiler of GLSL to SPIR-V")
tessera_find_newest(TESSERA_SPIRV_VAL spirv-val "SPIR-V validator")
find_program(TESSERA_CLANG NAMES clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14
             DOC "clang, for the syntax check of OpenCL C")
mark_as_advanced(TESSERA_GLSLC TESSERA_SPIRV_VAL TESSERA_CLANG)
