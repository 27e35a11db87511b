# SPDX-License-Identifier: Apache-2.0
# Installs Tessera into the build directory and builds the examples against it as a stranger would.

set(packaging "${PROJECT_BINARY_DIR}/packaging")
set(scripts "${PROJECT_SOURCE_DIR}/tests/packaging")
set(examples "${PROJECT_SOURCE_DIR}/examples")
set(static_flags)
if(TESSERA_SANITIZE)
  list(JOIN TESSERA_SANITIZE_OPTIONS " " static_flags)
endif()

# Builds examples/<folder> in a directory of its own and runs its program.
function(tessera_add_example test folder program)
  tessera_add_test(
    ${test} packaging "${CMAKE_CTEST_COMMAND}" --build-and-test "${examples}/${folder}" "${packaging}/${test}"
    --build-generator "${CMAKE_GENERATOR}" --build-makeprogram "${CMAKE_MAKE_PROGRAM}" --build-options
    "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}" ${ARGN} --test-command "${packaging}/${test}/${program}")
endfunction()

# ---- this build's own library ----------------------------------------------------------------------------------------

set(prefix "${packaging}/prefix")
tessera_add_test(packaging.install packaging "${CMAKE_COMMAND}" "-DBUILD=${PROJECT_BINARY_DIR}" "-DPREFIX=${prefix}"
                 "-DCONFIG=$<CONFIG>" -P "${scripts}/install.cmake")
tessera_add_test(packaging.headers packaging "${CMAKE_COMMAND}" "-DCXX=${CMAKE_CXX_COMPILER}"
                 "-DINCLUDE=${prefix}/${CMAKE_INSTALL_INCLUDEDIR}" "-DWORK=${packaging}/headers" -P
                 "${scripts}/check_headers.cmake")
set(installed packaging.headers packaging.custom_operation packaging.append_rows)
get_property(left_out GLOBAL PROPERTY TESSERA_LEFT_OUT)
if(NOT "flash_attention" IN_LIST left_out)  # the examples call it
  tessera_add_example(packaging.find_package find_package attention "-DCMAKE_PREFIX_PATH=${prefix}"
                      "-DCMAKE_CXX_FLAGS=${static_flags}")
  tessera_add_example(packaging.c_program c_program c_program "-DCMAKE_PREFIX_PATH=${prefix}"
                      "-DCMAKE_C_FLAGS=${static_flags}" "-DCMAKE_CXX_FLAGS=${static_flags}")
  set_property(TEST packaging.c_program APPEND PROPERTY ENVIRONMENT TESSERA_DEVICE=host)  # nothing to compile
  list(APPEND installed packaging.find_package packaging.c_program)
  if(TESSERA_HAVE_OPENCL)
    tessera_add_example(packaging.opencl_interop opencl_interop opencl_interop "-DCMAKE_PREFIX_PATH=${prefix}"
                        "-DCMAKE_CXX_FLAGS=${static_flags}")
    list(APPEND installed packaging.opencl_interop)
  endif()
  if(TESSERA_HAVE_VULKAN AND TESSERA_GLSLC)
    tessera_add_example(packaging.vulkan_frame vulkan_frame vulkan_frame "-DCMAKE_PREFIX_PATH=${prefix}"
                        "-DCMAKE_CXX_FLAGS=${static_flags}" "-DGLSLC=${TESSERA_GLSLC}")
    # Under the validation layer, where there is one.
    set_property(TEST packaging.vulkan_frame APPEND PROPERTY ENVIRONMENT ${TESSERA_VALIDATION_LAYER})
    set_tests_properties(packaging.vulkan_frame PROPERTIES FAIL_REGULAR_EXPRESSION "Validation Error;SYNC-HAZARD;VUID-")
    list(APPEND installed packaging.vulkan_frame)
  endif()
endif()
if(TESSERA_HAVE_OPENCL AND TESSERA_HAVE_VULKAN AND NOT "mean_pooling" IN_LIST left_out)
  tessera_add_example(packaging.shared_memory shared_memory shared_memory "-DCMAKE_PREFIX_PATH=${prefix}"
                      "-DCMAKE_CXX_FLAGS=${static_flags}")
  list(APPEND installed packaging.shared_memory)
endif()
if(NOT left_out MATCHES "(^|;)(ragged_page_attention_v3|kv_cache|norms|linear)(;|$)")
  tessera_add_example(packaging.continuous_batching continuous_batching continuous_batching
                      "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_FLAGS=${static_flags}")
  list(APPEND installed packaging.continuous_batching)
endif()
foreach(example IN ITEMS custom_operation append_rows)
  tessera_add_example(packaging.${example} ${example} ${example} "-DCMAKE_PREFIX_PATH=${prefix}"
                      "-DCMAKE_CXX_FLAGS=${static_flags}")
endforeach()

tessera_add_test(packaging.debian "packaging;full" sh "${scripts}/packages.sh" "${CMAKE_CPACK_COMMAND}" "${PROJECT_BINARY_DIR}"
                 "${packaging}/debian")
set_tests_properties(packaging.debian PROPERTIES SKIP_RETURN_CODE 77)

tessera_add_test(packaging.conan "packaging;full" sh "${scripts}/conan.sh" "${PROJECT_SOURCE_DIR}" "${packaging}/conan")
set_tests_properties(packaging.conan PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 3600 PROCESSORS 2)
if(Python3_FOUND)
  tessera_add_test(packaging.abi packaging "${Python3_EXECUTABLE}" "${scripts}/abi.py" "${PROJECT_SOURCE_DIR}/include")
  set_tests_properties(packaging.abi PROPERTIES SKIP_RETURN_CODE 77)
endif()

find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND AND NOT "flash_attention" IN_LIST left_out)
  tessera_add_test(packaging.pkg_config packaging sh "${scripts}/pkg_config.sh" "${examples}/pkg_config"
                   "${prefix}/${CMAKE_INSTALL_LIBDIR}" "${packaging}/grouped")
  set_property(TEST packaging.pkg_config APPEND PROPERTY ENVIRONMENT "CXX=${CMAKE_CXX_COMPILER}" "CXXFLAGS=${static_flags}")
  list(APPEND installed packaging.pkg_config)
endif()
set_tests_properties(packaging.install PROPERTIES FIXTURES_SETUP tessera_installed)
set_tests_properties(${installed} PROPERTIES FIXTURES_REQUIRED tessera_installed)

# ---- built inside another project ------------------------------------------------------------------------------------
# One build serves twice: it is the example, and the shared library that the rest looks at. Unoptimised and of one family,
# for time.

set(inner "${packaging}/packaging.add_subdirectory")
set(shared_prefix "${packaging}/shared_prefix")
set(parts)
foreach(part IN ITEMS OPENCL VULKAN SHADERC)
  list(APPEND parts "-DTESSERA_${part}=${TESSERA_${part}}")
endforeach()
tessera_add_example(packaging.add_subdirectory add_subdirectory every_device "-DTESSERA_FOLDER=${PROJECT_SOURCE_DIR}"
                    -DBUILD_SHARED_LIBS=ON -DTESSERA_INSTALL=ON -DTESSERA_OPERATIONS=pooling
                    -DTESSERA_UNITY=${TESSERA_UNITY} -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0
                    "-DCMAKE_INSTALL_LIBDIR=${CMAKE_INSTALL_LIBDIR}" ${parts})
set_tests_properties(packaging.add_subdirectory PROPERTIES FIXTURES_SETUP tessera_inner TIMEOUT 1200 PROCESSORS 2)

# A static library hands its dependencies on to the enclosing project; whether they arrive shows when that is generated.
tessera_add_test(packaging.add_subdirectory_static packaging "${CMAKE_COMMAND}" -G "${CMAKE_GENERATOR}" -S
                 "${examples}/add_subdirectory" -B "${packaging}/static_configure"
                 "-DTESSERA_FOLDER=${PROJECT_SOURCE_DIR}" "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}" ${parts})

tessera_add_test(packaging.shared_install packaging "${CMAKE_COMMAND}" "-DBUILD=${inner}" "-DPREFIX=${shared_prefix}"
                 -DCONFIG=Debug -P "${scripts}/install.cmake")
set_tests_properties(packaging.shared_install PROPERTIES FIXTURES_REQUIRED tessera_inner FIXTURES_SETUP tessera_shared)
tessera_add_example(packaging.shared_find_package custom_operation custom_operation "-DCMAKE_PREFIX_PATH=${shared_prefix}")
set(shared_tests packaging.shared_find_package)
if(UNIX AND NOT APPLE)
  tessera_add_test(packaging.exports packaging "${CMAKE_COMMAND}" "-DNM=${CMAKE_NM}"
                   "-DLIBRARY_DIR=${shared_prefix}/${CMAKE_INSTALL_LIBDIR}" -P "${scripts}/check_exports.cmake")
  list(APPEND shared_tests packaging.exports)
  if(Python3_FOUND)
    tessera_add_test(packaging.ctypes packaging "${Python3_EXECUTABLE}" "${scripts}/ctypes_test.py"
                     "${shared_prefix}/${CMAKE_INSTALL_LIBDIR}/libtessera.so")
    list(APPEND shared_tests packaging.ctypes)
  endif()
endif()
set_tests_properties(${shared_tests} PROPERTIES FIXTURES_REQUIRED tessera_shared)
