// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "device/opencl/cl.hpp"

namespace tessera::device::opencl {

// A buffer in huge pages of the host's memory, for devices that compute in it: rows of a tensor lie
// far apart, and 4 KiB pages make a translation miss of each of them. The pages go when the last
// command that uses the buffer is done. CL_INVALID_HOST_PTR in `code` where none can be had.
cl_mem create_in_huge_pages(cl_context context, std::uint64_t bytes, cl_int* code);

// From this size on it is worth it.
inline constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;

}  // namespace tessera::device::opencl
