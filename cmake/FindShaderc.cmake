# SPDX-License-Identifier: Apache-2.0
# libshaderc ships no CMake package. Defines Shaderc::shaderc and Shaderc_LIBRARIES. Installed next to
# tesseraConfig.cmake, because a static libtessera hands the dependency on.
#
# Whether a library that was found can also be linked is tried out: Debian 12's libshaderc.so lacks symbols of glslang
# and SPIRV-Tools, and its libshaderc_combined.a holds shaderc alone, so there the static parts are put together.
find_path(Shaderc_INCLUDE_DIR shaderc/shaderc.hpp)
mark_as_advanced(Shaderc_INCLUDE_DIR)

function(_shaderc_try_link out)
  # The result hangs on the libraries, which may come with a later install, so their names are part of the variable's.
  string(MD5 digest "${ARGN};${CMAKE_CXX_COMPILER}")
  set(variable "Shaderc_LINKS_${digest}")
  if(NOT DEFINED ${variable})
    set(source "${CMAKE_BINARY_DIR}/CMakeFiles/shaderc_try_link.cpp")
    file(WRITE "${source}" "#include <shaderc/shaderc.hpp>
int main() {
  return static_cast<int>(shaderc::Compiler().CompileGlslToSpv(\"\", shaderc_compute_shader, \"\").GetNumErrors());
}
")
    try_compile(${variable} "${CMAKE_BINARY_DIR}/CMakeFiles/shaderc_try_link" "${source}"
                CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${Shaderc_INCLUDE_DIR}" LINK_LIBRARIES ${ARGN} CXX_STANDARD 17)
  endif()
  set(${out} ${${variable}} PARENT_SCOPE)
endfunction()

set(Shaderc_LIBRARIES)
if(Shaderc_INCLUDE_DIR)
  # Candidates, best first: the shared library; the static one, complete in itself; the static one and its parts.
  find_library(Shaderc_SHARED_LIBRARY NAMES shaderc_shared shaderc)
  find_library(Shaderc_STATIC_LIBRARY NAMES shaderc_combined)
  mark_as_advanced(Shaderc_SHARED_LIBRARY Shaderc_STATIC_LIBRARY)
  set(_shaderc_parts)
  foreach(_shaderc_part IN ITEMS glslang SPIRV MachineIndependent GenericCodeGen OSDependent OGLCompiler
                                 SPIRV-Tools-opt SPIRV-Tools)
    find_library(Shaderc_${_shaderc_part}_LIBRARY NAMES ${_shaderc_part})
    mark_as_advanced(Shaderc_${_shaderc_part}_LIBRARY)
    if(Shaderc_${_shaderc_part}_LIBRARY)
      list(APPEND _shaderc_parts "${Shaderc_${_shaderc_part}_LIBRARY}")
    endif()
  endforeach()
  find_package(Threads QUIET)
  foreach(_shaderc_candidate IN ITEMS "${Shaderc_SHARED_LIBRARY}" "${Shaderc_STATIC_LIBRARY}"
                                      "${Shaderc_STATIC_LIBRARY};${_shaderc_parts}")
    list(GET _shaderc_candidate 0 _shaderc_library)
    if(_shaderc_library AND NOT Shaderc_LIBRARIES)
      _shaderc_try_link(_shaderc_links ${_shaderc_candidate} ${CMAKE_THREAD_LIBS_INIT})
      if(_shaderc_links)
        set(Shaderc_LIBRARIES "${_shaderc_candidate}")
      endif()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Shaderc REQUIRED_VARS Shaderc_LIBRARIES Shaderc_INCLUDE_DIR)

if(Shaderc_FOUND AND NOT TARGET Shaderc::shaderc)
  set(_shaderc_rest ${Shaderc_LIBRARIES})
  list(POP_FRONT _shaderc_rest _shaderc_library)
  add_library(Shaderc::shaderc UNKNOWN IMPORTED)
  set_target_properties(
    Shaderc::shaderc PROPERTIES IMPORTED_LOCATION "${_shaderc_library}" INTERFACE_INCLUDE_DIRECTORIES
                                                                        "${Shaderc_INCLUDE_DIR}")
  set_property(TARGET Shaderc::shaderc PROPERTY INTERFACE_LINK_LIBRARIES ${_shaderc_rest} ${CMAKE_THREAD_LIBS_INIT})
endif()
