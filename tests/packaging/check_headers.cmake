# SPDX-License-Identifier: Apache-2.0
# cmake -DCXX=<compiler> -DINCLUDE=<installed include dir> -DWORK=<scratch dir> -P check_headers.cmake
# Every installed header, as C99 too where it is one of C, compiles alone and twice, without warnings, and reaches nothing
# but Tessera's own headers and the standard library's. interop/ holds the headers that name vendor types on purpose.
file(MAKE_DIRECTORY "${WORK}")
file(GLOB_RECURSE headers RELATIVE "${INCLUDE}" "${INCLUDE}/*.hpp")
list(FILTER headers EXCLUDE REGEX "/interop/")
if(NOT headers)
  message(FATAL_ERROR "${INCLUDE} holds no headers")
endif()
set(source "${WORK}/alone.cpp")
file(GLOB_RECURSE c_headers RELATIVE "${INCLUDE}" "${INCLUDE}/*.h")
foreach(header IN LISTS c_headers)
  file(WRITE "${WORK}/alone.c" "#include \"${header}\"\n#include \"${header}\"\nint main(void) { return 0; }\n")
  execute_process(COMMAND "${CXX}" -x c -std=c99 -Wall -Wextra -Wpedantic -Werror "-I${INCLUDE}" -fsyntax-only "${WORK}/alone.c"
                  RESULT_VARIABLE result ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message(SEND_ERROR "${header} does not compile as C99:\n${errors}")
  endif()
endforeach()
# What the headers of operations have in common is compiled once, and taken by those that include it themselves.
set(flags -std=c++20 -Wall -Wextra -Wpedantic -Werror "-I${INCLUDE}")
file(WRITE "${WORK}/context.hpp" "#include \"tessera/context.hpp\"\n")
execute_process(COMMAND "${CXX}" ${flags} -x c++-header "${WORK}/context.hpp" -o "${WORK}/context.hpp.gch" COMMAND_ERROR_IS_FATAL ANY)
foreach(header IN LISTS headers c_headers)
  file(WRITE "${source}" "#include \"${header}\"\n#include \"${header}\"\nint main() {}\n")
  file(STRINGS "${INCLUDE}/${header}" context REGEX "^#include \"tessera/(context|operations/[a-z0-9_]+)\\.hpp\"")
  set(compiled)
  if(context)
    set(compiled -include "${WORK}/context.hpp")
  endif()
  execute_process(
    COMMAND "${CXX}" ${flags} ${compiled} -fsyntax-only -MD -MF "${WORK}/alone.d" "${source}"
    RESULT_VARIABLE result ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message(SEND_ERROR "${header} does not compile alone:\n${errors}")
    continue()
  endif()
  file(READ "${WORK}/alone.d" dependencies)
  string(REGEX MATCHALL "[^ \\\n]+/(CL|vulkan|eigen3|Eigen|nlohmann|CLI|shaderc)/[^ \\\n]+|[^ \\\n]+/xxhash\\.h" foreign
         "${dependencies}")
  if(foreign)
    list(GET foreign 0 first)
    message(SEND_ERROR "${header} includes ${first}")
  endif()
  message(STATUS "${header}: alone, standard library only")
endforeach()
