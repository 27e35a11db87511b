# SPDX-License-Identifier: Apache-2.0
# The command-line tool. Its target is tessera_tool, because tessera is the library; its file is <build>/tessera.
# Everything but main() is an object library, so that the tests can reach it.
file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/tessera/*.cpp")
if(sources)
  find_package(CLI11 2.1 QUIET)
  tessera_require(CLI11_FOUND "CLI11 2.1" libcli11-dev)
  list(REMOVE_ITEM sources "${PROJECT_SOURCE_DIR}/tools/tessera/main.cpp")
  add_library(tessera_tool_objects OBJECT ${sources})
  target_link_libraries(tessera_tool_objects PRIVATE tessera_private tessera_quickly_compiled CLI11::CLI11)
  target_include_directories(tessera_tool_objects PRIVATE "${PROJECT_SOURCE_DIR}/tools")
  tessera_precompile(tessera_tool_objects)
  tessera_unite(tessera_tool_objects)

  add_executable(tessera_tool "${PROJECT_SOURCE_DIR}/tools/tessera/main.cpp" $<TARGET_OBJECTS:tessera_tool_objects>)
  target_link_libraries(tessera_tool PRIVATE tessera_internal tessera_quickly_compiled)
  target_include_directories(tessera_tool PRIVATE "${PROJECT_SOURCE_DIR}/tools")
  set_target_properties(tessera_tool PROPERTIES OUTPUT_NAME tessera RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
endif()
