# SPDX-License-Identifier: Apache-2.0
# tests/**/*_test.cpp become one GoogleTest program, tests/conformance/*.cpp the conformance runner. Labels: unit,
# stress, conformance, random, validation, vendors, packaging, style; the conformance of a family also has the family's
# name, and what tools/test.sh runs with --full only is labelled full.

# No test touches the user's caches, and all of them share what was compiled.
set(TESSERA_TEST_CACHE "${PROJECT_BINARY_DIR}/test_cache")
set(TESSERA_TEST_LEDGER "${PROJECT_BINARY_DIR}/ledger.txt")  # what families cost; tools/test.sh prints it
file(MAKE_DIRECTORY "${TESSERA_TEST_CACHE}/pocl" "${TESSERA_TEST_CACHE}/tessera" "${TESSERA_TEST_CACHE}/mesa")
set(TESSERA_TEST_ENVIRONMENT PYTHONDONTWRITEBYTECODE=1 "POCL_CACHE_DIR=${TESSERA_TEST_CACHE}/pocl" "TESSERA_CACHE_DIR=${TESSERA_TEST_CACHE}/tessera"
    "MESA_SHADER_CACHE_DIR=${TESSERA_TEST_CACHE}/mesa")
if(TESSERA_SANITIZE)
  # Drivers keep what they allocated; only leaks of our own are errors.
  list(APPEND TESSERA_TEST_ENVIRONMENT
       "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/sanitizer/lsan.supp:print_suppressions=0"
       "ASAN_OPTIONS=detect_stack_use_after_return=1"
       "UBSAN_OPTIONS=print_stacktrace=1")
endif()

# `labels` is a list.
function(tessera_add_test name labels)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" ENVIRONMENT "${TESSERA_TEST_ENVIRONMENT}" TIMEOUT 1800)
endfunction()

file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/*_test.cpp")
list(FILTER sources EXCLUDE REGEX "/tests/(conformance|vendors)/")
file(GLOB support CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/*.cpp" "${PROJECT_SOURCE_DIR}/tests/operations/*/*.cpp")
list(FILTER support EXCLUDE REGEX "_(fixture|test)\\.cpp$")
tessera_filter_sources(sources ${sources})
tessera_filter_sources(support ${support})
if(NOT TARGET tessera_tool_objects)
  list(FILTER sources EXCLUDE REGEX "/tests/tools/")
endif()
# Definitions and comparisons, which run for longer than they are compiled.
add_library(tessera_test_support OBJECT EXCLUDE_FROM_ALL ${support})
target_link_libraries(tessera_test_support PRIVATE tessera_private)
target_include_directories(tessera_test_support PRIVATE "${PROJECT_SOURCE_DIR}/tests")
tessera_precompile(tessera_test_support)
tessera_unite(tessera_test_support "/model[a-z_]*\\.cpp$")  # names alike
if(sources)
  find_package(GTest QUIET)
  tessera_require(GTest_FOUND "GoogleTest" "libgtest-dev libgmock-dev")
  file(GLOB fixtures CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/device/*_fixture.cpp"
       "${PROJECT_SOURCE_DIR}/tests/support/*_fixture.cpp")
  # A platform that is not built has no tests.
  if(NOT TESSERA_HAVE_OPENCL)
    list(FILTER sources EXCLUDE REGEX "/tests/(device/(opencl_|ptx_)|interop/opencl_)")
    list(FILTER fixtures EXCLUDE REGEX "/opencl_")
  endif()
  if(NOT TESSERA_HAVE_VULKAN)
    list(FILTER sources EXCLUDE REGEX "/tests/(device|interop)/vulkan_")
    list(FILTER fixtures EXCLUDE REGEX "/vulkan_")
  endif()
  add_executable(tessera_tests ${sources} ${fixtures} $<TARGET_OBJECTS:tessera_test_support>)
  target_link_libraries(tessera_tests PRIVATE tessera_internal tessera_quickly_compiled GTest::gmock GTest::gtest_main)
  # As applications do. What fixtures put in front of a loader's functions, Tessera finds.
  if(TESSERA_HAVE_OPENCL)
    target_link_libraries(tessera_tests PRIVATE OpenCL::OpenCL)
  endif()
  if(TESSERA_HAVE_VULKAN)
    target_link_libraries(tessera_tests PRIVATE Vulkan::Vulkan)
  endif()
  target_include_directories(tessera_tests PRIVATE "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}/tools")
  tessera_precompile(tessera_tests <gmock/gmock.h> <gtest/gtest.h>)
  tessera_unite(tessera_tests "/(device/(opencl_[a-z_]+|platforms_test)|(layers|matmul|metamorphic)_test)\\.cpp$")  # names alike
  if(TARGET tessera_tool_objects)
    target_sources(tessera_tests PRIVATE $<TARGET_OBJECTS:tessera_tool_objects>)
  endif()
  target_compile_definitions(
    tessera_tests PRIVATE TESSERA_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TESSERA_BINARY_DIR="${PROJECT_BINARY_DIR}")

  # One ctest entry per file, whose suites are read from its text: nothing is launched to find out, and a file's tests
  # share the start of the drivers.
  foreach(source IN LISTS sources)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
    file(STRINGS "${source}" lines REGEX "^(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\\(")
    set(patterns)
    foreach(line IN LISTS lines)
      string(REGEX MATCH "\\([ \t]*([A-Za-z0-9_]+)" _ "${line}")
      list(APPEND patterns "${CMAKE_MATCH_1}.*" "${CMAKE_MATCH_1}/*" "*/${CMAKE_MATCH_1}.*" "*/${CMAKE_MATCH_1}/*")
    endforeach()
    list(REMOVE_DUPLICATES patterns)
    list(JOIN patterns ":" filter)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/tests" OUTPUT_VARIABLE name)
    string(REGEX REPLACE "_test\\.cpp$" "" name "${name}")
    string(REPLACE "/" "." name "${name}")
    if(name MATCHES "stress")
      set(label stress)
    else()
      set(label unit)
    endif()
    tessera_add_test(${name} ${label} tessera_tests "--gtest_filter=${filter}" --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES FAIL_REGULAR_EXPRESSION "\\] 0 tests from")
  endforeach()
endif()

file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/conformance/*.cpp")
get_property(families GLOBAL PROPERTY TESSERA_FAMILIES)
if("matmul" IN_LIST families AND NOT TESSERA_OPERATIONS)
  list(APPEND families fused_mlp)  # of calls alone: no folder of kernels names it
endif()
if(TESSERA_OPERATIONS)
  list(FILTER sources EXCLUDE REGEX "/(large|random)\\.cpp$") # they draw calls of operations that may not be there
endif()
if(sources)
  add_executable(tessera_conformance ${sources} $<TARGET_OBJECTS:tessera_test_support>)
  find_package(CLI11 2.1 QUIET)
  tessera_require(CLI11_FOUND "CLI11 2.1" libcli11-dev)
  target_link_libraries(tessera_conformance PRIVATE tessera_internal tessera_quickly_compiled CLI11::CLI11)
  target_include_directories(tessera_conformance PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  tessera_unite(tessera_conformance)
  set(attention 0)
  if("attention" IN_LIST families AND NOT TESSERA_OPERATIONS)
    set(attention 1)  # --random and --large draw calls of all its operations
  endif()
  target_compile_definitions(tessera_conformance PRIVATE TESSERA_TEST_ATTENTION=${attention})
  # One for each backend and family, before all tests that others do not wait for: they take longest, and what they
  # compile stays in stores that random calls, unit tests and the tests of the tool share.
  set(backends)
  if(TESSERA_HAVE_OPENCL)
    list(APPEND backends opencl)
  endif()
  if(TESSERA_HAVE_VULKAN)
    list(APPEND backends vulkan)
  endif()
  list(APPEND backends host)  # short ones
  foreach(backend IN LISTS backends)
    foreach(family IN LISTS families)
      set(name ${backend}.${family})
      tessera_add_test(conformance.${name} "conformance;${family}" tessera_conformance ${backend} --family ${family}
                       --ledger "${TESSERA_TEST_LEDGER}")
      set_tests_properties(conformance.${name} PROPERTIES COST 1000)
      tessera_add_test(conformance.full.${name} "conformance;${family};full" tessera_conformance ${backend} --family
                       ${family} --full --ledger "${TESSERA_TEST_LEDGER}")
      set_tests_properties(conformance.full.${name} PROPERTIES TIMEOUT 7200 COST 1001)
    endforeach()
  endforeach()

  # Devices whose buffers hold no 16 bits take modules of their own, which differ in how shaders reach an element. Lavapipe
  # takes them where it may not have what it has.
  if(TESSERA_HAVE_VULKAN AND NOT TESSERA_OPERATIONS)
    foreach(run "cumsum|columns" "causal_conv1d|columns" "quantised_matmul|lanes")
      string(REPLACE "|" ";" run "${run}")
      list(GET run 0 operation)
      list(GET run 1 variant)
      tessera_add_test(conformance.storage32.${operation} conformance tessera_conformance vulkan:cpu ${operation}
                       --variant ${variant} --types f32)
      set_property(TEST conformance.storage32.${operation} APPEND PROPERTY ENVIRONMENT "TESSERA_DISABLE=storage16")
    endforeach()
  endif()

  tessera_add_test(conformance.seed_alone unit tessera_conformance --seed 3 host)
  set_tests_properties(conformance.seed_alone PROPERTIES PASS_REGULAR_EXPRESSION "--seed requires --random or --hostile-tables")

  # Calls drawn from seeds that change with the kernels, a fifth of them backward. 2,000 that ran without a failure bound
  # the rate of failures at 0.15 % (95 %).
  if(attention)
    foreach(backend IN LISTS backends)
      if(backend STREQUAL "host")
        continue()
      endif()
      if(backend STREQUAL "vulkan")
        set(calls 100)  # lavapipe takes half a second for each
      else()
        set(calls 200)
      endif()
      tessera_add_test(random.${backend} "random;attention" tessera_conformance --random ${calls} ${backend}:cpu)
      tessera_add_test(random.full.${backend} "random;attention;full" tessera_conformance --random 2000 ${backend}:cpu)
      # After the table, most of whose programs it finds in the stores.
      set_tests_properties(random.${backend} random.full.${backend} PROPERTIES SKIP_RETURN_CODE 77 COST 20)
      set_tests_properties(random.full.${backend} PROPERTIES TIMEOUT 1800)
    endforeach()
  endif()
endif()

include(TesseraLifetimeTests)

# The tool from outside: tests/tools/*_test.py, which take its path.
find_package(Python3 QUIET COMPONENTS Interpreter)
if(Python3_FOUND AND TARGET tessera_tool)
  file(GLOB scripts CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/tools/*_test.py")
  tessera_filter_sources(scripts ${scripts})
  foreach(script IN LISTS scripts)
    cmake_path(GET script STEM name)
    string(REGEX REPLACE "_test$" "" name "${name}")
    tessera_add_test(tools.${name} unit "${Python3_EXECUTABLE}" "${script}" "$<TARGET_FILE:tessera_tool>")
    set_tests_properties(tools.${name} PROPERTIES COST 10)  # not the last ones: short tests fill what is left
  endforeach()
endif()

# Cooperative matrices on a CPU: Debian's newest lavapipe has them. Few cases: it takes seconds to compile one.
# tessera_check_cooperative(NAME PROGRAM CHECK...): what `tessera check` is asked, where glslc made this of shaders.
function(tessera_check_cooperative name program)
  get_property(skipped GLOBAL PROPERTY TESSERA_SKIPPED_NAMES)
  if("${program}" IN_LIST skipped)
    set(command sh -c "echo 'skipped: the glslc of this build knows no cooperative matrices' && exit 77")
  else()
    set(command sh "${PROJECT_SOURCE_DIR}/tools/newer.sh" run "$<TARGET_FILE:tessera_tool>" check ${ARGN} --quick
                --device vulkan:cpu)
  endif()
  tessera_add_test(conformance.${name} conformance ${command})
  set_tests_properties(conformance.${name} PROPERTIES SKIP_RETURN_CODE 77)
  # One after the other: where cases have a pipeline in common, the driver's store has it for the second.
  get_property(before GLOBAL PROPERTY "TESSERA_COOPERATIVE_${program}")
  if(before)
    set_tests_properties(conformance.${name} PROPERTIES DEPENDS conformance.${before})
  endif()
  set_property(GLOBAL PROPERTY "TESSERA_COOPERATIVE_${program}" ${name})
endfunction()
if(TESSERA_HAVE_VULKAN AND TARGET tessera_tool AND "attention" IN_LIST families)
  foreach(run "cooperative|odd" "cooperative|everything" "cooperative_registers|odd")
    string(REPLACE "|" ";" run "${run}")
    list(GET run 0 variant)
    list(GET run 1 case)
    tessera_check_cooperative(${variant}.${case} "attention/cooperative/forward.comp[DTYPE=1,POLICY=0,REGISTERS=0]"
                              flash_attention --dtype f16 --variant ${variant} --only ${case})
  endforeach()
  foreach(run "cooperative|alibi_causal" "cooperative|some_nan_mask" "cooperative|hidden_nan_packed"
              "cooperative_registers|window_diagonal")
    string(REPLACE "|" ";" run "${run}")
    list(GET run 0 variant)
    list(GET run 1 case)
    tessera_check_cooperative(${variant}_backward.${case}
                              "attention/cooperative/backward.comp[DTYPE=1,OWN_KEYS=0,POLICY=0,REGISTERS=0]"
                              flash_attention_backward --dtype f16 --variant ${variant} --only ${case})
  endforeach()
  tessera_check_cooperative(cooperative.ragged_page_attention
                            "attention/cooperative/forward.comp[DTYPE=1,PAGED=1,POLICY=1,REGISTERS=0]"
                            ragged_page_attention --dtype f16 --variant cooperative --only hostile)
  foreach(run "f16|hostile" "f16_e4m3fn|hostile" "f16_i4|splits")
    string(REPLACE "|" ";" run "${run}")
    list(GET run 0 dtype)
    list(GET run 1 case)
    tessera_check_cooperative(cooperative_decode.${dtype} "attention/cooperative/decode.comp[DTYPE=1,PAGED=1,POLICY=1]"
                              page_attention --dtype ${dtype} --variant cooperative_decode --only ${case})
  endforeach()
  foreach(operation matmul matmul_backward)
    tessera_check_cooperative(cooperative.${operation} "matmul/cooperative/product.comp[DTYPE=1]"
                              ${operation} --dtype f16 --variant cooperative --only tn)
  endforeach()
  foreach(run "grouped_matmul|share" "transposed_grouped_matmul|hostile")
    string(REPLACE "|" ";" run "${run}")
    list(GET run 0 operation)
    list(GET run 1 case)
    tessera_check_cooperative(cooperative.${operation} "matmul/cooperative/grouped.comp[DTYPE=1]"
                              ${operation} --dtype f16 --variant cooperative --only ${case})
  endforeach()
  tessera_check_cooperative(cooperative.quantised_matmul "quantised/cooperative/product.comp[DTYPE=1]"
                            quantised_matmul --dtype f16 --variant cooperative --only u4_more)
  foreach(case i4_row u4_parts)
    tessera_check_cooperative(cooperative_stream.quantised_matmul.${case} "quantised/cooperative/stream.comp[DTYPE=1]"
                              quantised_matmul --dtype f16 --variant cooperative_stream --only ${case})
  endforeach()
  foreach(case chunks_packed chunks_in_place)
    tessera_check_cooperative(cooperative.recurrent.${case} "recurrence/cooperative/states.comp[DTYPE=1]"
                              recurrent --dtype f16 --variant cooperative --only ${case})
  endforeach()
  tessera_check_cooperative(cooperative.gated_delta_rule.chunks_packed "recurrence/cooperative/delta_chunks.comp[DTYPE=1]"
                            gated_delta_rule --dtype f16 --variant cooperative --only chunks_packed)
  foreach(case chunks_packed chunks_large)
    tessera_check_cooperative(cooperative.gated_delta_rule_backward.${case}
                              "recurrence/cooperative/delta_gradients.comp[DTYPE=1]"
                              gated_delta_rule_backward --dtype f16 --variant cooperative --only ${case})
  endforeach()
  foreach(case chunks_packed chunks_growing)
    tessera_check_cooperative(cooperative.recurrent_backward.${case} "recurrence/cooperative/gradients.comp[DTYPE=1]"
                              recurrent_backward --dtype f16 --variant cooperative --only ${case})
  endforeach()
  # It takes that lavapipe most of a minute. cooperative_registers.odd runs plain calls of the same file, cooperative.everything the
  # way to keep sums.
  set_tests_properties(conformance.cooperative.odd PROPERTIES LABELS "conformance;full")
  if(TARGET tessera_tests)
    tessera_add_test(kernels.cooperative unit sh "${PROJECT_SOURCE_DIR}/tools/newer.sh" run
                     "$<TARGET_FILE:tessera_tests>" --gtest_filter=VulkanTiles.CooperativeMatrices* --gtest_brief=1)
    set_tests_properties(kernels.cooperative PROPERTIES SKIP_RETURN_CODE 77)
  endif()
endif()

include(TesseraOtherDriverTests)

# Kernels under tools that watch what they do. Oclgrind: bounds and races, and uninitialised memory in kernels that are not
# optimised or inlined, for it knows neither the instruction freeze nor the marks that inlining leaves. Vulkan's validation
# layer: the API and synchronisation, and with GPU-assisted checks what shaders access. Debian's newest lavapipe runs those,
# 22.3 refuses what they make of kernels with policies. The layer knows no cooperative matrices yet. Small cases: they are a
# hundred times slower, and what GPU-assisted checks make of the kernels for gradients takes lavapipe more than ten minutes
# to compile.
set(TESSERA_VALIDATION_LAYER "VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation"
                             "VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT")
if(TARGET tessera_tests AND TESSERA_HAVE_VULKAN)
  tessera_add_test(validation.vulkan.interop validation tessera_tests --gtest_filter=VulkanDevices.*:VulkanRecordings.*:VulkanInC.* --gtest_brief=1)
  set_property(TEST validation.vulkan.interop APPEND PROPERTY ENVIRONMENT ${TESSERA_VALIDATION_LAYER})
  set_tests_properties(validation.vulkan.interop PROPERTIES FAIL_REGULAR_EXPRESSION "Validation Error;SYNC-HAZARD;VUID-")
endif()
if(TARGET tessera_tool)
  set(check "$<TARGET_FILE:tessera_tool>" check --quick --dtype f32)
  find_program(TESSERA_OCLGRIND oclgrind)
  if(TESSERA_HAVE_OPENCL AND TESSERA_OCLGRIND)
    set(races --data-races)
    set(uninitialized --uninitialized --build-options "-cl-opt-disable -DINLINE=static")
    # Small tiles: it interprets every item, also those that have no row.
    set(forward --variant tile
        --config BLOCK_Q=8,BLOCK_K=16,ITEM_ROWS=4,SLICE_D=16,SLICE_K=16,KEEP_Q=0,PREFETCH=1,WG_X=8,SPLITS=1)
    set(backward --variant tile --config BLOCK_Q=16,BLOCK_K=16,ITEM_ROWS=4,SLICE_D=16,SLICE_STEP=16,WG_X=16)
    function(tessera_add_oclgrind labels kind name)
      set(name validation.oclgrind.${kind}.${name})
      tessera_add_test(${name} "${labels}" "${TESSERA_OCLGRIND}" ${${kind}} ${check} --device opencl ${ARGN})
      set_tests_properties(${name} PROPERTIES COST 100 FAIL_REGULAR_EXPRESSION
                           "Invalid read;Invalid write;ata race;Uninitialized;OCLGRIND FATAL")
      if(kind STREQUAL "uninitialized")  # its programs are not the ones that the cache holds
        set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "TESSERA_CACHE_DIR=off")
      endif()
    endfunction()
    set(slow "validation;full")
    if("attention" IN_LIST families)
      tessera_add_oclgrind(validation races forward.odd flash_attention ${forward} --only odd)
      tessera_add_oclgrind(validation races backward.odd flash_attention_backward ${backward} --only odd)
      tessera_add_oclgrind("${slow}" uninitialized forward.odd flash_attention ${forward} --only odd)
      tessera_add_oclgrind("${slow}" uninitialized backward.odd flash_attention_backward ${backward} --only odd)
      tessera_add_oclgrind("${slow}" races forward.everything flash_attention ${forward} --only everything)
      tessera_add_oclgrind("${slow}" races decode.odd flash_attention --variant decode --only odd)
    endif()
    if(TARGET tessera_conformance)
      set(name validation.oclgrind.races.hostile_tables)
      tessera_add_test(${name} "${slow}" "${TESSERA_OCLGRIND}" --data-races
                       $<TARGET_FILE:tessera_conformance> --hostile-tables 100 opencl)
      set_tests_properties(${name} PROPERTIES COST 100 FAIL_REGULAR_EXPRESSION
                           "Invalid read;Invalid write;ata race;OCLGRIND FATAL")
    endif()
    if("pooling" IN_LIST families)
      tessera_add_oclgrind(validation races sequence_mean sequence_mean)
      tessera_add_oclgrind("${slow}" races chunk_mean chunk_mean)
      tessera_add_oclgrind("${slow}" races chunk_mean_backward chunk_mean_backward)
    endif()
  elseif(TESSERA_HAVE_OPENCL)
    message(STATUS "tessera: Oclgrind is not installed: no test runs kernels under it")
  endif()
  if(TESSERA_HAVE_VULKAN AND "attention" IN_LIST families)
    foreach(case odd everything)
      set(labels validation)
      if(case STREQUAL "odd")
        list(APPEND labels full)  # another shader, the same launches
      endif()
      tessera_add_test(validation.vulkan.${case} "${labels}" ${check} --device vulkan:cpu --only ${case})
      set_property(TEST validation.vulkan.${case} APPEND PROPERTY ENVIRONMENT ${TESSERA_VALIDATION_LAYER})
      set_tests_properties(validation.vulkan.${case} PROPERTIES FAIL_REGULAR_EXPRESSION
                           "Validation Error;SYNC-HAZARD;VUID-")
    endforeach()
    foreach(case odd key_mask)
      set(name validation.gpu_assisted.${case})
      tessera_add_test(${name} "validation;full" sh "${PROJECT_SOURCE_DIR}/tools/newer.sh" run ${check} flash_attention
                       --device vulkan:cpu --only ${case})
      set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "TESSERA_DISABLE=coopmat"
                   "VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation"
                   "VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT")
      set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 FAIL_REGULAR_EXPRESSION "Validation Error;VUID-")
    endforeach()
  endif()
endif()

include(TesseraVendorTests)

if(Python3_FOUND AND TARGET tessera_tool AND NOT TESSERA_OPERATIONS)  # README.md lists all operations
  tessera_add_test(docs.readme style "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/update_docs.py"
                   "$<TARGET_FILE:tessera_tool>" --check)
endif()

# ---- style -----------------------------------------------------------------------------------------------------------

if(Python3_FOUND)
  tessera_add_test(style.layers style "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/check_layers.py"
                   "${PROJECT_SOURCE_DIR}")
  tessera_add_test(style.sizes style "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/check_sizes.py"
                   "${PROJECT_SOURCE_DIR}")
endif()
tessera_add_test(style.format style sh "${PROJECT_SOURCE_DIR}/tools/check_format.sh")
set_tests_properties(style.format PROPERTIES SKIP_RETURN_CODE 77)

# ---- the package -----------------------------------------------------------------------------------------------------

if(TESSERA_BUILD_EXAMPLES AND TESSERA_INSTALL)
  include(TesseraPackagingTests)
endif()
