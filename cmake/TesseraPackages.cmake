# SPDX-License-Identifier: Apache-2.0
# `cpack` in the build directory: an archive, and Debian packages of the components runtime (the shared library), dev and
# tools. CPACK_PACKAGE_CONTACT is whoever makes them. Debian's own files of a package (copyright, changelog, manual page) are made here from ours.

set(CPACK_PACKAGE_NAME tessera)
set(CPACK_PACKAGE_VENDOR "The Tessera authors")
set(CPACK_PACKAGE_CONTACT "The Tessera authors <tessera@example.org>" CACHE STRING "Maintainer of packages")
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "deep-learning kernels for OpenCL and Vulkan devices")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR TGZ)
if(UNIX AND NOT APPLE)
  list(APPEND CPACK_GENERATOR DEB)
endif()

set(CPACK_COMPONENTS_ALL dev)
if(TARGET tessera_tool)
  list(APPEND CPACK_COMPONENTS_ALL tools)
endif()
if(BUILD_SHARED_LIBS)
  list(APPEND CPACK_COMPONENTS_ALL runtime)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)

set(about
    "Flash attention, matrix products, norms and pooling, forward and backward,
on GPUs and CPUs of any vendor through OpenCL and Vulkan compute.")
set(soname "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME "libtessera${soname}")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "${about}\nThis package has the shared library.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libtessera-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEV_DESCRIPTION "${about}\nThis package has what programs are built with, in C++ and in C.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME tessera-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "${about}\nThis package has the command-line tool: it lists devices, runs, checks,\ntimes and tunes the kernels.")
# tessera/interop/ includes CL/ and vulkan/. The loaders are opened at run time and no dependency that a tool could see.
set(dev_depends)
set(loaders)
if(TESSERA_HAVE_OPENCL)
  list(APPEND dev_depends "opencl-c-headers | opencl-headers")
  list(APPEND loaders "ocl-icd-libopencl1 | libopencl1")
endif()
if(TESSERA_HAVE_VULKAN)
  list(APPEND dev_depends libvulkan-dev)
  list(APPEND loaders libvulkan1)
endif()
if(BUILD_SHARED_LIBS)
  list(APPEND dev_depends "libtessera${soname} (= ${PROJECT_VERSION})")
elseif(TESSERA_HAVE_SHADERC)
  list(APPEND dev_depends libshaderc-dev)  # a static library hands on what it links
endif()
list(JOIN loaders ", " loaders)
foreach(package IN ITEMS RUNTIME TOOLS)
  set(CPACK_DEBIAN_${package}_PACKAGE_RECOMMENDS "${loaders}")
endforeach()
list(JOIN dev_depends ", " CPACK_DEBIAN_DEV_PACKAGE_DEPENDS)

# ---- what Debian wants in each package -------------------------------------------------------------------------------

set(debian "${PROJECT_BINARY_DIR}/debian")
file(MAKE_DIRECTORY "${debian}")
file(WRITE "${debian}/copyright" "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: tessera

Files: *
Copyright: 2026 the Tessera authors
License: Apache-2.0
 On Debian systems, the full text of the Apache License, version 2.0, is in
 the file \"/usr/share/common-licenses/Apache-2.0\".
")
file(WRITE "${debian}/changelog" "tessera (${PROJECT_VERSION}) unstable; urgency=medium

  * See CHANGELOG.md of the dev package.

 -- ${CPACK_PACKAGE_CONTACT}  Thu, 01 Jan 2026 00:00:00 +0000
")
configure_file("${PROJECT_SOURCE_DIR}/cmake/templates/tessera.1.in" "${debian}/tessera.1" @ONLY)
find_program(TESSERA_GZIP gzip)
mark_as_advanced(TESSERA_GZIP)
if(TESSERA_GZIP)
  # Without the time, so that two builds give the same bytes.
  execute_process(COMMAND "${TESSERA_GZIP}" -9nf "${debian}/changelog" "${debian}/tessera.1" COMMAND_ERROR_IS_FATAL ANY)
  foreach(component IN LISTS CPACK_COMPONENTS_ALL)
    string(TOUPPER "${component}" upper)
    set(folder "${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}")
    install(FILES "${debian}/copyright" "${debian}/changelog.gz" DESTINATION "${folder}" COMPONENT ${component})
  endforeach()
  if(TARGET tessera_tool)
    install(FILES "${debian}/tessera.1.gz" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT tools)
  endif()
endif()

include(CPack)
