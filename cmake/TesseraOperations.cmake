# SPDX-License-Identifier: Apache-2.0
# Operations, and the kernels that are compiled into the library.
#
#   tessera_add_operation(NAME [SHADERS shader...] [OPENCL kernel...])
#   tessera_add_kernels(NAME [SHADERS shader...] [OPENCL kernel...])    kernels that belong to no operation
#
# An operation NAME has its code in src/operations/NAME, where `Operation tessera::operations::NAME()` is defined, and
# its public header, if it has one, in include/tessera/operations/NAME.hpp. A folder of src/operations without an
# operation.cpp is code that operations share, and is always compiled.
#
# A shader is a file of shaders/, a kernel one of cl_kernels/, followed by what it is built with, separated by '|':
#   AXIS=1,2     build-time axis: compiled once for each value, with -DAXIS=value. Several axes multiply.
#   name.def     (kernels) the tunables' defaults for the syntax check: src/operations/NAME/name.def, or a path below
#                src/. Shaders include theirs.
#   -flag        handed to the compiler. Shaders take --target-env=vulkan1.1 -O unless a flag says otherwise.
# A shader with axes becomes one embedded module for each combination, named "file[AXIS=value,...]" with the axes sorted;
# without axes it is "file[]". A kernel without a DTYPE axis is checked for DTYPE=0,1,2.

include(TesseraShaders)
include(TesseraOpenCL)

function(tessera_add_operation name)
  set_property(GLOBAL APPEND PROPERTY TESSERA_OPERATIONS ${name})
  tessera_add_kernels(${name} ${ARGN})
endfunction()

function(tessera_add_kernels name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SHADERS;OPENCL")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${name}: what is ${arg_UNPARSED_ARGUMENTS}?")
  endif()
  set_property(GLOBAL APPEND PROPERTY TESSERA_KERNEL_GROUPS ${name})
  if(TESSERA_HAVE_VULKAN)
    tessera_add_shaders(${name} "${arg_SHADERS}")
  endif()
  tessera_check_opencl(${name} "${arg_OPENCL}")
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
  foreach(name IN LISTS operations)
    set(folder "${PROJECT_SOURCE_DIR}/src/operations/${name}")
    if(NOT EXISTS "${folder}/operation.cpp")
      message(FATAL_ERROR "operation ${name}: there is no src/operations/${name}/operation.cpp")
    endif()
    string(APPEND declarations "std::vector<Operation> ${name}();\n")
    string(APPEND calls "  append(all, operations::${name}());\n")
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

  file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true RELATIVE "${PROJECT_SOURCE_DIR}/src/operations"
       "${PROJECT_SOURCE_DIR}/src/operations/*")
  foreach(name IN LISTS folders)
    set(folder "${PROJECT_SOURCE_DIR}/src/operations/${name}")
    if(EXISTS "${folder}/operation.cpp" AND NOT name IN_LIST operations)
      message(WARNING "src/operations/${name} is not built: CMakeLists.txt has no tessera_add_operation(${name} ...)")
      continue()
    endif()
    file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
    target_sources(tessera_objects PRIVATE ${sources})
  endforeach()

  tessera_finish_shaders()
  tessera_finish_opencl()
  tessera_embed_texts()
endfunction()
