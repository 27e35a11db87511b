# SPDX-License-Identifier: Apache-2.0
# cmake -DNM=<nm> -DLIBRARY_DIR=<dir> -P check_exports.cmake
# A shared libtessera exports names of namespace tessera and the C functions of c_exports.txt, and no other: no std
# instantiation, no driver wrapper. It links no loader. A function that leaves the list, or changes, needs another soname.
cmake_minimum_required(VERSION 3.25)
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/c_exports.txt" c_functions)
file(GLOB libraries "${LIBRARY_DIR}/libtessera.so")
if(NOT libraries)
  message(FATAL_ERROR "${LIBRARY_DIR} holds no libtessera.so")
endif()
execute_process(COMMAND "${NM}" --dynamic --defined-only --format=posix ${libraries} OUTPUT_VARIABLE table
                COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${table}")
set(count 0)
set(foreign)
foreach(line IN LISTS lines)
  string(REGEX REPLACE " .*" "" symbol "${line}")
  if(symbol MATCHES "^_Z(N|NK|TIN|TSN|TVN|TTN|GVN)7tessera")
    math(EXPR count "${count} + 1")
  elseif(symbol IN_LIST c_functions)
    list(REMOVE_ITEM c_functions "${symbol}")
  else()
    list(APPEND foreign "${symbol}")
  endif()
endforeach()
if(foreign)
  list(JOIN foreign "\n  " text)
  message(FATAL_ERROR "libtessera.so exports what is not Tessera's:\n  ${text}")
endif()
if(c_functions)
  message(FATAL_ERROR "libtessera.so does not export ${c_functions}")
endif()
# The entry point of any program, so that an empty list of exports does not pass.
if(NOT table MATCHES "_ZN7tessera7Context4open")
  message(FATAL_ERROR "libtessera.so does not export tessera::Context::open")
endif()
# The loaders are opened at run time.
execute_process(COMMAND "${NM}" --dynamic --undefined-only --format=posix ${libraries} OUTPUT_VARIABLE table
                COMMAND_ERROR_IS_FATAL ANY)
if(table MATCHES "\n((cl|vk)[A-Z][A-Za-z]+)[ @]")
  message(FATAL_ERROR "libtessera.so needs ${CMAKE_MATCH_1} of a loader")
endif()
message(STATUS "${count} symbols of namespace tessera, and those of tessera.h")
