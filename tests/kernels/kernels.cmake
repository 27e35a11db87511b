# SPDX-License-Identifier: Apache-2.0
# Small kernels that test the tiles of cl_kernels/lib alone; they are checked like the library's own and not embedded.
set(kernels
    "tests/kernels/tile_products.cl|DTYPE=0|ALIGNED=0|FEATURES=22|COLUMNS_OUT=14|WG_X=16"
    "tests/kernels/cpu_panels.cl|DTYPE=1|VECTOR_WIDTH=4,16|VECTORS=2|FEATURES=13"
    "tests/kernels/mma_products.cl|DTYPE=0,1,2|FEATURES=37,40|COLUMNS=24|WG_X=64|${TESSERA_NVIDIA_PTX}"
    "tests/kernels/storage_types.cl|DTYPE=0|WG_X=64"
    "tests/kernels/hopper_products.cl|DTYPE=1,2|FEATURES=128|WG_X=128|${TESSERA_NVIDIA_PTX}")
tessera_check_opencl("${CMAKE_CURRENT_LIST_DIR}" "${kernels}")

# Modules that libshaderc cannot make at run time.
if(TESSERA_GLSLC)
  tessera_glslc_knows(known GL_KHR_cooperative_matrix)
  if(known)
    set(module "${TESSERA_GENERATED_DIR}/tests/cooperative_products.spv")
    file(MAKE_DIRECTORY "${TESSERA_GENERATED_DIR}/tests")
    add_custom_command(
      OUTPUT "${module}"
      COMMAND "${TESSERA_GLSLC}" --target-env=vulkan1.3 -O ${TESSERA_SHADER_INCLUDES} -MD -MF "${module}.d" -MT
              "${module}" -o "${module}" "${CMAKE_CURRENT_LIST_DIR}/cooperative_products.comp"
      DEPENDS "${CMAKE_CURRENT_LIST_DIR}/cooperative_products.comp"
      DEPFILE "${module}.d"
      COMMENT "SPIR-V of tests/kernels/cooperative_products.comp"
      VERBATIM)
    add_custom_target(tessera_test_modules ALL DEPENDS "${module}")
  endif()
endif()
