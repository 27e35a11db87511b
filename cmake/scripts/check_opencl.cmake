# SPDX-License-Identifier: Apache-2.0
# cmake -DCLANG= -DFILE= -DINCLUDES=<source dir> -DDEFS=a|b -DCOMBINATIONS=DTYPE=0,X=1|... -DFLAGS=-a|-b -DSTAMP=
#       -DDEPFILE= -P check_opencl.cmake
# Parses one OpenCL C file with clang, once per combination of its axes, with the tunables' default values. Everything
# that a driver would be given at run time is given here, so the base form must keep to OpenCL C 1.2. DEPFILE becomes the
# list of the files that were read.

cmake_minimum_required(VERSION 3.25)
set(defines -DWG_X=1 -DWG_Y=1 -DWG_Z=1 -DVECTOR_WIDTH=16)
string(REPLACE "|" ";" defs "${DEFS}")
foreach(def IN LISTS defs)
  file(STRINGS "${def}" lines REGEX "^[ \t]*(TUNABLE|CONSTANT)\\(")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^[ \t]*[A-Z]+\\([^,]*,[ \t]*([A-Za-z0-9_]+)[ \t]*,[ \t]*([^)]*)\\)")
      message(FATAL_ERROR "${def}: what is '${line}'?")
    endif()
    # A tunable may give one of the defaults above another value.
    list(FILTER defines EXCLUDE REGEX "^-D${CMAKE_MATCH_1}=")
    list(APPEND defines "-D${CMAKE_MATCH_1}=${CMAKE_MATCH_2}")
  endforeach()
endforeach()

cmake_path(GET DEPFILE PARENT_PATH folder)
file(MAKE_DIRECTORY "${folder}")  # not every generator has made it
string(REPLACE "|" ";" combinations "${COMBINATIONS}")
string(REPLACE "|" ";" flags "${FLAGS}")
if(NOT flags MATCHES "-cl-std=")
  list(APPEND flags -cl-std=CL1.2)
endif()
if(NOT flags MATCHES "-target")
  list(APPEND flags --target=spir64-unknown-unknown)
endif()
set(read)
foreach(combination IN LISTS combinations)
  string(REPLACE "," ";" axes "${combination}")
  set(values "${defines}")
  foreach(axis IN LISTS axes)
    string(REGEX REPLACE "=.*" "" name "${axis}")
    list(FILTER values EXCLUDE REGEX "^-D${name}=")
    list(APPEND values "-D${axis}")
  endforeach()
  # Built-ins declared by the compiler's table parse in a tenth of the time of the full header.
  execute_process(
    COMMAND "${CLANG}" -x cl ${flags} -fsyntax-only -Xclang -finclude-default-header -Xclang -fdeclare-opencl-builtins
            -Wall -Wextra -Wno-unused-parameter -Werror "-I${INCLUDES}/cl_kernels" "-I${INCLUDES}/src" ${values}
            -MD -MF "${DEPFILE}.part" -MT stamp "${FILE}"
    RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${FILE} does not compile with ${combination}")
  endif()
  file(READ "${DEPFILE}.part" rule)
  string(REGEX REPLACE "^[^:]*:|\\\\\n|\n" " " rule "${rule}")
  string(REPLACE "\\ " "?" rule "${rule}")  # a space in a name
  string(REGEX MATCHALL "[^ ]+" rule "${rule}")
  list(APPEND read ${rule})
endforeach()
list(REMOVE_DUPLICATES read)
list(JOIN read " \\\n  " read)
string(REPLACE "?" "\\ " read "${read}")
string(REPLACE " " "\\ " target "${STAMP}")
file(WRITE "${DEPFILE}" "${target}: ${read}\n")
file(REMOVE "${DEPFILE}.part")
file(WRITE "${STAMP}" "")
