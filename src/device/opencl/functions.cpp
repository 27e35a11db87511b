// SPDX-License-Identifier: Apache-2.0
#include "device/opencl/functions.hpp"

#include <string>

#include "base/system/shared_library.hpp"
#include "tessera/error.hpp"

namespace tessera::device::opencl {
namespace {

#if defined(_WIN32)
constexpr auto kLoader = "OpenCL.dll";
#elif defined(__APPLE__)
constexpr auto kLoader = "/System/Library/Frameworks/OpenCL.framework/OpenCL";
#else
constexpr auto kLoader = "libOpenCL.so.1";
#endif

const SharedLibrary& loader() {
  static const SharedLibrary library(kLoader, "clGetPlatformIDs", "ocl-icd-libopencl1");
  return library;
}

}  // namespace

void* find_function(const char* name) {
  if (!loader().why_missing().empty()) throw DeviceError(loader().why_missing());
  void* const function = loader().find(name);
  if (function == nullptr)
    throw DeviceError(std::string(kLoader) + " has no " + name + ": it is older than OpenCL 1.2");
  return function;
}

}  // namespace tessera::device::opencl
