// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "device/opencl/cl.hpp"

namespace tessera::device::opencl {

std::string_view code_name(cl_int code);  // "CL_OUT_OF_RESOURCES", or "unknown code"

// "clFinish: CL_INVALID_COMMAND_QUEUE (-36)"
std::string describe(std::string_view call, cl_int code);

// For calls that have no open device yet: throws DeviceError. ClDevice::check is for all others.
void check_code(cl_int code, std::string_view call);

// What the driver may still say of a context when the device behind it is gone. Our contexts and
// queues are valid by construction, so being told otherwise means that the driver threw them away.
bool always_means_lost(cl_int code);

// A fault on the device (NVIDIA: a bad address, a watchdog) shows up in the next call that waits,
// as a code that means something milder in calls that don't wait.
bool means_lost_when_waiting(cl_int code);

// At clCreateBuffer.
bool means_out_of_memory(cl_int code);

}  // namespace tessera::device::opencl
