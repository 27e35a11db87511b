# SPDX-License-Identifier: Apache-2.0
# cmake -DBUILD=<build dir> -DPREFIX=<install dir> -DCONFIG=<config> -P install.cmake
# A fresh install tree: what an earlier version installed must not help. It is moved, and must not know where it was.
set(before "${PREFIX}.before")
file(REMOVE_RECURSE "${PREFIX}" "${before}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${before}" --config "${CONFIG}"
                COMMAND_ERROR_IS_FATAL ANY)
file(RENAME "${before}" "${PREFIX}")
file(GLOB_RECURSE texts "${PREFIX}/*.cmake" "${PREFIX}/*.pc" "${PREFIX}/*.hpp" "${PREFIX}/*.h")
if(NOT texts)
  message(FATAL_ERROR "${PREFIX} holds no headers")
endif()
foreach(text IN LISTS texts)
  file(STRINGS "${text}" lines REGEX "${before}|${BUILD}")
  if(lines)
    message(FATAL_ERROR "${text} names a place of this machine: ${lines}")
  endif()
endforeach()
