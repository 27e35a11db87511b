# SPDX-License-Identifier: Apache-2.0
# Contexts in static variables of a program, and of a library that it loads: tests/lifetime. What goes wrong goes wrong
# when a process ends, so each scenario is one; there is one test for each platform.

add_executable(tessera_lifetime "${PROJECT_SOURCE_DIR}/tests/lifetime/main.cpp")
add_library(tessera_lifetime_plugin MODULE "${PROJECT_SOURCE_DIR}/tests/lifetime/plugin.cpp")
foreach(target tessera_lifetime tessera_lifetime_plugin)
  target_link_libraries(${target} PRIVATE tessera_flags tessera ${CMAKE_DL_LIBS})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
endforeach()
foreach(device IN LISTS backends)
  tessera_add_test(lifetime.${device} unit tessera_lifetime ${device} all "$<TARGET_FILE:tessera_lifetime_plugin>")
  set_tests_properties(lifetime.${device} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()
