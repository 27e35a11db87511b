# SPDX-License-Identifier: Apache-2.0
# OpenCL C: checked with clang where there is one, and embedded as text. The driver compiles it at run time.

define_property(GLOBAL PROPERTY TESSERA_OPENCL_FILES)
define_property(GLOBAL PROPERTY TESSERA_OPENCL_STAMPS)

# Flags for kernels with x86 assembly or PTX in them.
set(TESSERA_X86_AVX512 "--target=x86_64-unknown-linux-gnu|-march=skylake-avx512")
set(TESSERA_NVIDIA_PTX "--target=nvptx64-nvidia-nvcl|-Xclang|-cl-ext=+cl_khr_fp16|-fgnu-keywords")

# What kernels may include; all of it is embedded.
file(GLOB_RECURSE TESSERA_KERNEL_HEADERS CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cl_kernels/*.clh")
file(GLOB_RECURSE shared_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/abi/*.h" "${PROJECT_SOURCE_DIR}/src/operations/*.h")
list(APPEND TESSERA_KERNEL_HEADERS ${shared_headers})

# `room` is the folder that the names of .def files are relative to.
function(tessera_check_opencl room kernels)
  foreach(kernel IN LISTS kernels)
    tessera_parse_kernel(kernel "${kernel}")
    set(source "${PROJECT_SOURCE_DIR}/cl_kernels/${kernel_FILE}")
    if("${kernel_FILE}" MATCHES "^tests/")
      set(source "${PROJECT_SOURCE_DIR}/${kernel_FILE}")
    endif()
    if(NOT EXISTS "${source}")
      message(FATAL_ERROR "${room}/kernels.cmake: there is no cl_kernels/${kernel_FILE}")
    endif()
    set_property(GLOBAL APPEND PROPERTY TESSERA_OPENCL_FILES "${kernel_FILE}")
    if(NOT TESSERA_CLANG OR NOT PROJECT_IS_TOP_LEVEL)
      continue()
    endif()
    set(defs)
    foreach(def IN LISTS kernel_DEFS)
      set(path "${room}/${def}")
      if(NOT EXISTS "${path}")
        message(FATAL_ERROR "${room}/kernels.cmake: ${kernel_FILE} names ${def}, which is not there")
      endif()
      list(APPEND defs "${path}")
    endforeach()
    if(NOT "${kernel_COMBINATIONS}" MATCHES "DTYPE=")
      tessera_parse_kernel(kernel "${kernel}|DTYPE=0,1,2")
    endif()
    string(REPLACE ";" "|" combinations "${kernel_COMBINATIONS}")
    string(REPLACE ";" "|" flags "${kernel_FLAGS}")
    string(REPLACE ";" "|" def_files "${defs}")
    set(stamp "${TESSERA_GENERATED_DIR}/checked/${kernel_FILE}.stamp")
    get_property(stamps GLOBAL PROPERTY TESSERA_OPENCL_STAMPS)
    if(stamp IN_LIST stamps)  # a second line for a kernel, with combinations of its own
      string(MD5 digest "${kernel_COMBINATIONS}")
      set(stamp "${TESSERA_GENERATED_DIR}/checked/${kernel_FILE}.${digest}.stamp")
    endif()
    add_custom_command(
      OUTPUT "${stamp}"
      COMMAND
        "${CMAKE_COMMAND}" "-DCLANG=${TESSERA_CLANG}" "-DFILE=${source}" "-DINCLUDES=${PROJECT_SOURCE_DIR}"
        "-DDEFS=${def_files}" "-DCOMBINATIONS=${combinations}" "-DFLAGS=${flags}" "-DSTAMP=${stamp}"
        "-DDEPFILE=${stamp}.d" -P "${PROJECT_SOURCE_DIR}/cmake/scripts/check_opencl.cmake"
      DEPENDS "${source}" ${defs} "${PROJECT_SOURCE_DIR}/cmake/scripts/check_opencl.cmake"
      DEPFILE "${stamp}.d"
      COMMENT "Checking OpenCL C ${kernel_FILE}"
      VERBATIM)
    set_property(GLOBAL APPEND PROPERTY TESSERA_OPENCL_STAMPS "${stamp}")
  endforeach()
endfunction()

function(tessera_finish_opencl)
  get_property(stamps GLOBAL PROPERTY TESSERA_OPENCL_STAMPS)
  if(stamps)
    add_custom_target(tessera_check_opencl ALL DEPENDS ${stamps})
  endif()
  if(NOT TESSERA_CLANG AND PROJECT_IS_TOP_LEVEL)
    message(STATUS "tessera: no clang, so OpenCL C is not checked at build time")
  endif()
  get_property(registered GLOBAL PROPERTY TESSERA_OPENCL_FILES)
  file(GLOB_RECURSE all CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/cl_kernels" "${PROJECT_SOURCE_DIR}/cl_kernels/*.cl")
  foreach(file IN LISTS all)
    if(NOT file IN_LIST registered AND NOT TESSERA_OPERATIONS)
      message(WARNING "cl_kernels/${file} is not checked: no kernels.cmake of a listed family names it")
    endif()
  endforeach()
endfunction()

# Adds generated code that defines `function`, from files whose embedded paths are relative to one of `roots`.
function(tessera_embed function roots)
  set(output "${TESSERA_GENERATED_DIR}/${function}.cpp")
  set(list_file "${TESSERA_GENERATED_DIR}/${function}.list")
  list(JOIN ARGN "\n" text)
  file(CONFIGURE OUTPUT "${list_file}" CONTENT "${text}\n" @ONLY)
  string(REPLACE ";" "|" root_list "${roots}")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DLIST=${list_file}" "-DROOTS=${root_list}" "-DFUNCTION=${function}"
            "-DOUTPUT=${output}" -P "${PROJECT_SOURCE_DIR}/cmake/scripts/embed_text.cmake"
    DEPENDS ${ARGN} "${list_file}" "${PROJECT_SOURCE_DIR}/cmake/scripts/embed_text.cmake"
    COMMENT "Embedding ${function}"
    VERBATIM)
  target_sources(tessera_kernels PRIVATE "${output}")
endfunction()

function(tessera_embed_texts)
  set(kernels)
  if(TESSERA_HAVE_OPENCL)
    get_property(kernels GLOBAL PROPERTY TESSERA_OPENCL_FILES)
    list(REMOVE_DUPLICATES kernels)
    list(FILTER kernels EXCLUDE REGEX "^tests/")
    list(TRANSFORM kernels PREPEND "${PROJECT_SOURCE_DIR}/cl_kernels/")
    list(APPEND kernels ${TESSERA_KERNEL_HEADERS})
    list(SORT kernels)
  endif()
  tessera_embed(embedded_files "${PROJECT_SOURCE_DIR}/cl_kernels;${PROJECT_SOURCE_DIR}/src" ${kernels})
  file(GLOB tuning CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tuning/*.json")
  tessera_embed(embedded_tuning "${PROJECT_SOURCE_DIR}/tuning" ${tuning})
endfunction()
