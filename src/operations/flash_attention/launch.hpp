// SPDX-License-Identifier: Apache-2.0
// What all kernels of flash attention are launched with.
#pragma once

#include <cstdint>
#include <vector>

#include "operations/flash_attention/problem.hpp"

namespace tessera::operations {

std::uint32_t head_dim(const Problem& problem);
std::uint32_t value_dim(const Problem& problem);
std::uint32_t dtype_axis(DType dtype);  // the value of the build-time axis DTYPE

// One work-group for each block of BLOCK_Q query rows of each head and batch; the caller adds
// sources and axes.
Pass forward_pass();

// The kernels count elements in 32 bits.
Refusal rejects_long_offsets(const Problem& problem);

Variant tile_variant();
Variant tile_subgroup_variant();
Variant cpu_variant();
Config default_tile_config(const Problem& problem, const DeviceProfile& profile);
Config default_cpu_config(const Problem& problem, const DeviceProfile& profile);

}  // namespace tessera::operations
