// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

#include "device/opencl/cl.hpp"
#include "tessera/device.hpp"

namespace tessera::device::opencl {

// Why a platform or device cannot be used: becomes a ProbeFailure.
class Unusable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

std::string platform_name(cl_platform_id platform);

// Throws Unusable for a device that is too old, switched off, or has no compiler; DeviceError for a
// query that failed.
DeviceProfile read_profile(cl_platform_id platform, cl_device_id device);

bool is_pocl(const DeviceProfile& profile);

// Everything that a compiled program depends on, as text: part of the key under which it is kept.
std::string fingerprint(const DeviceProfile& profile, cl_device_id device);

}  // namespace tessera::device::opencl
