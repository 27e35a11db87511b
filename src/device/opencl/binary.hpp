// SPDX-License-Identifier: Apache-2.0
// Programs as bytes. All that is known about what drivers call a program binary is in binary.cpp.
#pragma once

#include <string>

#include "device/device.hpp"
#include "device/opencl/cl.hpp"
#include "device/opencl/device.hpp"

namespace tessera::device::opencl {

// Whether programs are better left to what the driver keeps. PoCL has machine code in a cache of
// its own, and when it is asked for a binary it compiles every kernel once more, for work-groups of
// any size, which nobody launches: 2.3 s beside 0.9 s for the program and 1.8 s for the code that
// runs (the CPU's forward attention, PoCL 3.1). A later process has the program in 25 ms, from a
// binary in 5 ms.
bool driver_keeps_programs(const DeviceProfile& profile);

std::string blob_key(const ClDevice& device, const ProgramRequest& request,
                     const std::string& options);

// The built program that the store has under `key`, or an empty handle: a binary that is missing or
// that the driver refuses is no error.
cl::Program load_binary(const ClDevice& device, BlobStore& store, const std::string& key,
                        const std::string& options);

// Keeps what the driver compiled from source. Never fails a build that went well.
void keep_binary(const ClDevice& device, BlobStore& store, const std::string& key,
                 cl::Program& built);

// Keeps the PTX of `built` pointed at another target (ptx_promotion.hpp), and returns the program
// made from it. Throws BuildError.
cl::Program keep_promoted(const ClDevice& device, BlobStore& store, const std::string& key,
                          const std::string& options, const ProgramRequest& request,
                          cl::Program& built);

}  // namespace tessera::device::opencl
