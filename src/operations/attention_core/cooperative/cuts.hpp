// SPDX-License-Identifier: Apache-2.0
// What the kernels of cooperative matrices share whose pairs of rows and keys are tiles: the cuts
// that they take, and how these suit a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "operations/attention_core/launch.hpp"

namespace tessera::operations::attention {

inline constexpr std::int64_t kFewestRows = 32;  // below, most rows of a tile would be empty

// What a configuration takes of a device; invalid where its work-group does not divide.
struct CutCosts {
  bool valid = false;
  std::uint32_t local_bytes = 0;
  std::uint32_t registers = 0;  // of one item, about
};
// Of a configuration; with `matrix_lanes` as if a matrix lay in so many lanes, 0 = in its LANES.
using CostsOf = std::function<CutCosts(const Config&, std::uint32_t matrix_lanes)>;

// The kernels in registers know one type of matrix only, which has as many columns as terms.
std::vector<Config> cooperative_space(const Problem& problem, const DeviceProfile& profile,
                                      bool registers, const std::vector<Config>& cuts,
                                      const CostsOf& costs);
// Of a cut of so many sub-groups, what all have: the rest is the kernel's own.
Config cooperative_cut(const DeviceProfile& profile, std::uint32_t subgroups, std::uint32_t buffers,
                       std::uint32_t prefetch, Config own);

// 0 for a cut that suits the registers and the local memory of the GPU's cores, kSpills for one
// that does not fit; between them the registers, where few groups share a core.
inline constexpr std::uint32_t kSpills = 0xffffffffU;
std::uint32_t strain_of(const Problem& problem, const DeviceProfile& profile, const Config& config,
                        const CostsOf& costs);

std::vector<Define> cooperative_constants(const Problem& problem, const Config& config);
Requirements cooperative_needs(bool registers);
// `valid` of its costs; `geometry` says which file has them.
Refusal rejects_cooperative(const Problem& problem, const Config& config,
                            const DeviceProfile& profile, bool registers, bool valid,
                            const std::string& geometry);

}  // namespace tessera::operations::attention
