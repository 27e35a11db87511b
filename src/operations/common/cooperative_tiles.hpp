// SPDX-License-Identifier: Apache-2.0
// Tiles of BLOCK_M by BLOCK_N that sub-groups multiply by cooperative matrices, of any vendor:
// what families share whose kernels include shaders/lib/cooperative/tiles.glsl.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/record.hpp"

namespace tessera::operations {

// Of cooperative_tiles.def.
std::vector<Tunable> cooperative_tunables();
std::vector<std::string> cooperative_names();  // those that kernels are specialised on

// Of a work-group; 0 where the kernels have no such geometry.
std::uint64_t cooperative_local_bytes(const Config& config);

struct CooperativeCut {
  std::uint32_t block_m, block_n, block_k, group_m, group_n;
};

// Those of `cuts` that fit the device, for each of its shapes of matrices for the call's dtype, the
// largest of these first.
std::vector<Config> cooperative_configs(const Problem& problem, const DeviceProfile& profile,
                                        std::span<const CooperativeCut> cuts);
// Of products: large tiles first.
std::vector<Config> cooperative_cuts(const Problem& problem, const DeviceProfile& profile);

Refusal rejects_cooperative_cut(const Problem& problem, const Config& config,
                                const DeviceProfile& profile);

// Work-groups that each take one of `units`, fewer than 2^31.
Dim3 groups_of_units(std::uint64_t units);

}  // namespace tessera::operations
