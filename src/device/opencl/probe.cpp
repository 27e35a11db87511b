// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "device/opencl/device.hpp"
#include "device/opencl/errors.hpp"
#include "device/opencl/fork.hpp"
#include "device/opencl/profile.hpp"

namespace tessera::device {
namespace opencl {
namespace {

// Found keeps plain ids and no owning handles: probe results live until after main(), when no
// driver may be called. The ids of platforms and root devices stay valid for the life of the
// process.

void probe_device(cl_platform_id platform, cl_device_id device, PlatformProbe& result) {
  DeviceProfile profile = read_profile(platform, device);
  Found found;
  found.profile = profile;
  found.open = [platform, device, profile = std::move(profile), forks = fork_count()] {
    return open_cl_device(platform, device, profile, forks);
  };
  result.found.push_back(std::move(found));
}

std::vector<cl_device_id> devices_of(cl_platform_id platform) {
  cl_uint count = 0;
  check_code(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count), "clGetDeviceIDs");
  std::vector<cl_device_id> devices(count);
  check_code(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr),
             "clGetDeviceIDs");
  return devices;
}

void probe_platform(cl_platform_id platform, std::string where, PlatformProbe& result) {
  try {
    where = platform_name(platform);
    int index = 0;
    for (cl_device_id device : devices_of(platform)) {
      const std::string place = where + ", device " + std::to_string(index++);
      try {
        probe_device(platform, device, result);
      } catch (const std::exception& error) {
        result.failures.push_back({place, error.what()});
      }
    }
  } catch (const std::exception& error) {
    result.failures.push_back({where, error.what()});
  }
}

void probe_all(PlatformProbe& result) {
  cl_uint count = 0;
  cl_int code = clGetPlatformIDs(0, nullptr, &count);
  std::vector<cl_platform_id> platforms(count);
  if (code == CL_SUCCESS && count > 0) {
    code = clGetPlatformIDs(count, platforms.data(), nullptr);
  }
  if (code != CL_SUCCESS || count == 0) {
    const std::string why =
        code == CL_SUCCESS ? "the loader found no driver" : describe("clGetPlatformIDs", code);
    result.failures.push_back({"opencl", "no OpenCL platform: " + why});
    return;
  }
  for (cl_uint i = 0; i < count; ++i) {
    probe_platform(platforms[i], "OpenCL platform " + std::to_string(i), result);
  }
}

}  // namespace
}  // namespace opencl

PlatformProbe probe_opencl() {
  PlatformProbe result;
  try {
    opencl::probe_all(result);
  } catch (const std::exception& error) {
    result.failures.push_back({"opencl", error.what()});
  }
  return result;
}

}  // namespace tessera::device
