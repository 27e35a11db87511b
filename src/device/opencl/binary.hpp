// SPDX-License-Identifier: Apache-2.0
// Programs as bytes. All that is known about what drivers call a program binary is in binary.cpp.
#pragma once

#include <string>

#include "device/device.hpp"
#include "device/opencl/cl.hpp"
#include "device/opencl/device.hpp"

namespace tessera::device::opencl {

std::string blob_key(const ClDevice& device, const ProgramRequest& request,
                     const std::string& options);

// The built program that the store has under `key`, or an empty handle: a binary that is missing or
// that the driver refuses is no error.
cl::Program load_binary(const ClDevice& device, BlobStore& store, const std::string& key,
                        const std::string& options);

// Keeps what the driver compiled from source, and returns the program to run: `built` itself, or
// the same one made from the binary where that is better. Never fails a build that went well.
cl::Program keep_binary(const ClDevice& device, BlobStore& store, const std::string& key,
                        const std::string& options, cl::Program built);

// Keeps the PTX of `built` pointed at another target (ptx_promotion.hpp), and returns the program
// made from it. Throws BuildError.
cl::Program keep_promoted(const ClDevice& device, BlobStore& store, const std::string& key,
                          const std::string& options, const ProgramRequest& request,
                          cl::Program& built);

}  // namespace tessera::device::opencl
