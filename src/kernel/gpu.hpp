// SPDX-License-Identifier: Apache-2.0
// What variants know of GPUs beyond the profile, by vendor and generation. The figures are of
// compilers, not of clocks: tools/vendors.sh, docs/vendors.md.
#pragma once

#include <cstdint>

#include "tessera/device.hpp"
#include "tessera/record.hpp"

namespace tessera::kernel {

// Cores that run work-groups: streaming multiprocessors, compute units, Xe cores. A guess where the
// driver does not tell, since "1" would leave a GPU idle.
std::uint32_t compute_units_of(const DeviceProfile& profile);

// Items of a work-group: as many as are wanted, or the largest power of two that the device takes.
std::uint32_t most_items(const DeviceProfile& profile, std::uint32_t wanted);

// What the work-groups that share a core share.
struct Core {
  std::uint32_t lanes = 0;      // multiply-adds of a cycle
  std::uint32_t items = 0;      // at most
  std::uint64_t registers = 0;  // of 32 bits; 0 = every item has the same number
  std::uint64_t local_bytes = 0;
};
Core core_of(const DeviceProfile& profile);

// Memory that a work-group may have on NVIDIA's GPUs from sm_80 on, and on those with wgmma. OpenCL
// reports less: its number is for local arguments.
inline constexpr std::uint32_t kAmpereLocalBytes = 99 * 1024, kHopperLocalBytes = 227 * 1024;
std::uint32_t nvidia_local_bytes(const DeviceProfile& profile);
Refusal rejects_nvidia_bytes(std::uint64_t bytes, const DeviceProfile& profile);

// What a work-group may take before it runs alone on its core, or spills.
struct GroupBudget {
  std::uint32_t registers = 0;    // of an item, of 32 bits: beyond, too few groups share a core
  std::uint32_t spills_from = 0;  // registers that an item can't have
  std::uint32_t local_bytes = 0;  // of 128 items
};
// Of kernels with cooperative matrices. Where nothing is known, no limit.
GroupBudget group_budget(const DeviceProfile& profile);

// Items of a work-group from which on 64 sums of each leave a SIMD of AMD's four waves of 64 lanes,
// or two on GCN: by ACO such an item takes 137 registers, and 128 in groups of 256.
std::uint32_t fewest_items_of_64_sums(const DeviceProfile& profile);

// Lanes that hold a matrix of A or B between them once: all of a sub-group, but 16 on RDNA 3, whose
// 16 lanes each hold a row, and the others the same again.
std::uint32_t lanes_of_a_matrix(const DeviceProfile& profile);

}  // namespace tessera::kernel
