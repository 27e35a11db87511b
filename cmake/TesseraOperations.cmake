# SPDX-License-Identifier: Apache-2.0
# Families of operations, and the kernels that are compiled into the library.
#
#   tessera_add_family(NAME [CORES core...] [OPERATIONS operation...])
#
# TESSERA_OPERATIONS, a list of operations and families (a family stands for all its operations; empty: all there are),
# says which of them are built. A core is built with the first operation that uses it.
#
#   tessera_add_calls(FAMILY::OPERATION operation...)
#
# says which operations another one calls, before there are families: they are built with it. Those that call operations
# with calls of their own come first.
#
# Each core and each operation is a room: a folder of src/operations. A core holds what the operations of the family
# compute with, in sub-rooms where it knows several ways; an operation NAME/operation.cpp describes itself and defines
# `std::vector<Operation> tessera::operations::FAMILY::OPERATION()`. An operation may use the cores of its line and no
# others (tools/check_layers.py). Its public header, if it has one, is include/tessera/operations/OPERATION.hpp.
# src/operations/common belongs to every family and is always compiled.
#
# Every room and sub-room lists its kernels in a file kernels.cmake:
#
#   tessera_add_kernels([SHADERS shader...] [OPENCL kernel...])
#
# A shader is a file of shaders/, a kernel one of cl_kernels/, followed by what it is built with, separated by '|':
#   AXIS=1,2     build-time axis: compiled once for each value, with -DAXIS=value. Several axes multiply.
#   name.def     (kernels) the tunables' defaults for the syntax check, a file of the room. Shaders include theirs.
#   -flag        handed to the compiler. Shaders take --target-env=vulkan1.1 -O unless a flag says otherwise.
# A shader with axes becomes one embedded module for each combination, named "file[AXIS=value,...]" with the axes sorted;
# without axes it is "file[]". A kernel without a DTYPE axis is checked for DTYPE=0,1,2.

include(TesseraShaders)
include(TesseraOpenCL)

function(tessera_add_calls caller)
  string(REPLACE "::" ";" names "${caller}")
  foreach(name IN LISTS names)
    if(name IN_LIST TESSERA_OPERATIONS)
      list(APPEND TESSERA_OPERATIONS ${ARGN})
    endif()
  endforeach()
  set(TESSERA_OPERATIONS "${TESSERA_OPERATIONS}" PARENT_SCOPE)
endfunction()

function(tessera_add_family name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "CORES;OPERATIONS")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "family ${name}: what is ${arg_UNPARSED_ARGUMENTS}?")
  endif()
  set_property(GLOBAL APPEND PROPERTY TESSERA_KNOWN_OPERATIONS ${name} ${arg_OPERATIONS})
  if(TESSERA_OPERATIONS AND arg_OPERATIONS AND NOT name IN_LIST TESSERA_OPERATIONS)
    set(left_out ${arg_OPERATIONS})
    list(REMOVE_ITEM left_out ${TESSERA_OPERATIONS})
    if(left_out)
      list(REMOVE_ITEM arg_OPERATIONS ${left_out})
      set_property(GLOBAL APPEND PROPERTY TESSERA_LEFT_OUT ${name} ${left_out})
    endif()
    if(NOT arg_OPERATIONS)
      set_property(GLOBAL APPEND PROPERTY TESSERA_LEFT_OUT ${arg_CORES})
      return()
    endif()
  endif()
  if(arg_OPERATIONS)
    set_property(GLOBAL APPEND PROPERTY TESSERA_FAMILIES ${name})
  endif()
  foreach(operation IN LISTS arg_OPERATIONS)
    if(NOT EXISTS "${PROJECT_SOURCE_DIR}/src/operations/${operation}/operation.cpp")
      message(FATAL_ERROR "family ${name}: there is no src/operations/${operation}/operation.cpp")
    endif()
    set_property(GLOBAL APPEND PROPERTY TESSERA_OPERATIONS "${name}::${operation}")
  endforeach()
  get_property(rooms GLOBAL PROPERTY TESSERA_ROOMS)
  foreach(room IN LISTS arg_CORES arg_OPERATIONS)
    if(room IN_LIST rooms)
      continue()  # a core that another family uses too
    endif()
    set_property(GLOBAL APPEND PROPERTY TESSERA_ROOMS ${room})
    file(GLOB_RECURSE lists CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/operations/${room}/kernels.cmake")
    foreach(list IN LISTS lists)
      include("${list}")
    endforeach()
  endforeach()
endfunction()

function(tessera_add_kernels)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "SHADERS;OPENCL")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${CMAKE_CURRENT_LIST_FILE}: what is ${arg_UNPARSED_ARGUMENTS}?")
  endif()
  set(room "${CMAKE_CURRENT_LIST_DIR}")
  cmake_path(RELATIVE_PATH room BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/src/operations" OUTPUT_VARIABLE group)
  string(REPLACE "/" "_" group "${group}")
  if(TESSERA_HAVE_VULKAN)
    tessera_add_shaders(${group} "${arg_SHADERS}")
  endif()
  tessera_check_opencl("${room}" "${arg_OPENCL}")
endfunction()

# Files of a list that need nothing that TESSERA_OPERATIONS leaves out: neither a room, a family's folder of tests nor an
# operation by its name.
function(tessera_filter_sources out)
  get_property(left_out GLOBAL PROPERTY TESSERA_LEFT_OUT)
  set(kept ${ARGN})
  if(left_out)
    list(JOIN left_out "|" names)
    foreach(source IN LISTS ARGN)
      file(STRINGS "${source}" uses REGEX "operations/(${names})[/._]|\"(${names})[a-z_]*[\" ]")
      if(uses OR source MATCHES "/tests/operations/(${names})/")
        list(REMOVE_ITEM kept "${source}")
      endif()
    endforeach()
  endif()
  set(${out} ${kept} PARENT_SCOPE)
endfunction()

# Splits "file|AXIS=1,2|x.def|-flag" into <prefix>_FILE, _DEFS, _FLAGS and _COMBINATIONS: one "AXIS=1,OTHER=0" per
# combination, axes sorted; one "NONE" when there are no axes.
function(tessera_parse_kernel prefix text)
  string(REPLACE "|" ";" parts "${text}")
  list(POP_FRONT parts file)
  set(defs)
  set(flags)
  set(axes)
  foreach(part IN LISTS parts)
    if(part MATCHES "^-")
      list(APPEND flags "${part}")
    elseif(part MATCHES "\\.def$")
      list(APPEND defs "${part}")
    elseif(part MATCHES "^[A-Z][A-Z0-9_]*=[0-9]+(,[0-9]+)*$")
      list(APPEND axes "${part}")
    else()
      message(FATAL_ERROR "${text}: '${part}' is neither AXIS=1,2 nor a .def file nor a flag")
    endif()
  endforeach()
  list(SORT axes)
  set(combinations NONE)
  foreach(axis IN LISTS axes)
    string(REGEX MATCH "^([^=]+)=(.*)$" _ "${axis}")
    set(axis_name ${CMAKE_MATCH_1})
    string(REPLACE "," ";" values "${CMAKE_MATCH_2}")
    set(longer)
    foreach(combination IN LISTS combinations)
      foreach(value IN LISTS values)
        if(combination STREQUAL NONE)
          list(APPEND longer "${axis_name}=${value}")
        else()
          list(APPEND longer "${combination},${axis_name}=${value}")
        endif()
      endforeach()
    endforeach()
    set(combinations "${longer}")
  endforeach()
  set(${prefix}_FILE "${file}" PARENT_SCOPE)
  set(${prefix}_DEFS "${defs}" PARENT_SCOPE)
  set(${prefix}_FLAGS "${flags}" PARENT_SCOPE)
  set(${prefix}_COMBINATIONS "${combinations}" PARENT_SCOPE)
endfunction()

# Text as the inside of a C string literal.
function(tessera_escape out text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "\n" "\\n" text "${text}")
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# Everything that needs the whole list: sources, generated code, and checks that no file was forgotten.
function(tessera_finish_operations)
  get_property(operations GLOBAL PROPERTY TESSERA_OPERATIONS)
  set(declarations "")
  set(calls "")
  set(includes "")
  foreach(operation IN LISTS operations)
    string(REGEX MATCH "^(.+)::(.+)$" _ "${operation}")
    set(family "${CMAKE_MATCH_1}")
    set(name "${CMAKE_MATCH_2}")
    string(APPEND declarations "namespace ${family} {\nstd::vector<Operation> ${name}();\n}\n")
    string(APPEND calls "  append(all, operations::${operation}());\n")
    if(EXISTS "${PROJECT_SOURCE_DIR}/include/tessera/operations/${name}.hpp")
      string(APPEND includes "#include \"tessera/operations/${name}.hpp\"\n")
    endif()
  endforeach()
  set(OPERATION_DECLARATIONS "${declarations}")
  set(OPERATION_CALLS "${calls}")
  set(OPERATION_INCLUDES "${includes}")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/templates/builtin_operations.cpp.in"
                 "${TESSERA_GENERATED_DIR}/builtin_operations.cpp" @ONLY)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/templates/operations.hpp.in"
                 "${TESSERA_GENERATED_INCLUDE_DIR}/tessera/operations.hpp" @ONLY)
  target_sources(tessera_kernels PRIVATE "${TESSERA_GENERATED_DIR}/builtin_operations.cpp")

  get_property(known GLOBAL PROPERTY TESSERA_KNOWN_OPERATIONS)
  foreach(name IN LISTS TESSERA_OPERATIONS)
    if(NOT name IN_LIST known)
      message(FATAL_ERROR "TESSERA_OPERATIONS names ${name}, which is no operation and no family")
    endif()
  endforeach()

  get_property(rooms GLOBAL PROPERTY TESSERA_ROOMS)
  get_property(left_out GLOBAL PROPERTY TESSERA_LEFT_OUT)
  file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true RELATIVE "${PROJECT_SOURCE_DIR}/src/operations"
       "${PROJECT_SOURCE_DIR}/src/operations/*")
  foreach(room IN LISTS folders)
    if(NOT room IN_LIST rooms AND room IN_LIST left_out)
      continue()
    endif()
    if(NOT room IN_LIST rooms AND NOT room STREQUAL "common")
      message(WARNING "src/operations/${room} is not built: no tessera_add_family() in CMakeLists.txt names it")
      continue()
    endif()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/operations/${room}/*.cpp")
    target_sources(tessera_objects PRIVATE ${sources})
  endforeach()

  tessera_finish_shaders()
  tessera_finish_opencl()
  tessera_embed_texts()
endfunction()
