# SPDX-License-Identifier: Apache-2.0
# tessera_vendors builds the programs of all operations with the compilers of GPUs that are not here. Label: vendors. What
# tools/vendors.sh could not get is skipped by name.
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/vendors/*.cpp")
if(NOT TESSERA_HAVE_VULKAN)
  list(FILTER sources EXCLUDE REGEX "/pipelines\\.cpp$")
endif()
add_executable(tessera_vendors ${sources})
target_link_libraries(tessera_vendors PRIVATE tessera_internal tessera_quickly_compiled CLI11::CLI11)
target_include_directories(tessera_vendors PRIVATE "${PROJECT_SOURCE_DIR}/tests")
if(TESSERA_HAVE_VULKAN)
  target_link_options(tessera_vendors PRIVATE "LINKER:--wrap=vkCreateDevice,--wrap=vkCreateComputePipelines")
endif()
