# SPDX-License-Identifier: Apache-2.0
# The same kernels on drivers that this system does not have, and on sub-groups of other sizes. Label: conformance.
# What tools/newer.sh could not get is skipped by name.
if(NOT TARGET tessera_tool OR NOT "attention" IN_LIST families)
  return()
endif()

# lavapipe's sub-groups are as wide as its vectors: 8 lanes on most machines, and 4 and 16 where it is told so.
if(TESSERA_HAVE_VULKAN)
  foreach(bits 128 256 512)
    math(EXPR lanes "${bits} / 32")
    foreach(dtype f32 f16)
      set(name drivers.lavapipe.${lanes}_lanes.${dtype})
      tessera_add_test(${name} "conformance;full" tessera_tool check flash_attention --quick --device vulkan:cpu --variant
                       tile_subgroup --dtype ${dtype})
      set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "LP_NATIVE_VECTOR_WIDTH=${bits}")
      set_tests_properties(${name} PROPERTIES TIMEOUT 3600)
    endforeach()
  endforeach()
  tessera_add_test(drivers.lavapipe.4_lanes conformance tessera_tool check flash_attention --quick --device vulkan:cpu
                   --variant tile_subgroup --dtype f32 --only odd)
  set_property(TEST drivers.lavapipe.4_lanes APPEND PROPERTY ENVIRONMENT "LP_NATIVE_VECTOR_WIDTH=128")
endif()

# PoCL of another generation, and Mesa's OpenCL on llvmpipe, whose built-ins are not all there: kernels that it can't
# build are refused with a sentence, and nothing ends the process.
if(TESSERA_HAVE_OPENCL AND NOT TESSERA_SANITIZE)
  foreach(run "pocl|flash_attention" "pocl|flash_attention_backward" "pocl|sequence_mean" "pocl|rms_norm"
          "rusticl|sequence_mean")
    string(REPLACE "|" ";" run "${run}")
    list(GET run 0 driver)
    list(GET run 1 operation)
    set(name drivers.${driver}.${operation})
    tessera_add_test(${name} "conformance;full" sh "${PROJECT_SOURCE_DIR}/tools/newer.sh" on ${driver}
                     "$<TARGET_FILE:tessera_tool>" check ${operation} --quick --device opencl)
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 3600)
  endforeach()
endif()
