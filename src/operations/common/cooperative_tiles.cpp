// SPDX-License-Identifier: Apache-2.0
#include "operations/common/cooperative_tiles.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/vendor_ids.hpp"
#include "kernel/gpu.hpp"
#include "kernel/matrices.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/cooperative_tiles.h"

namespace tessera::operations {
namespace {

// The device's shapes for this call, largest first: an instruction of them does most.
std::vector<MatrixShape> shapes(const Problem& problem, const DeviceProfile& profile) {
  constexpr std::uint32_t kVector = 8;  // elements
  std::vector<MatrixShape> found;
  for (const MatrixShape& shape : profile.matrix_shapes) {
    if (shape.input == problem.dtype && shape.m % kVector == 0 && shape.n % kVector == 0 &&
        shape.k % kVector == 0)
      found.push_back(shape);
  }
  std::ranges::stable_sort(found, std::ranges::greater{},
                           [](const MatrixShape& s) { return s.m * s.n * s.k; });
  return found;
}

}  // namespace

std::vector<Tunable> cooperative_tunables() {
  return {
#include "operations/common/cooperative_tiles.def"
  };
}

std::vector<std::string> cooperative_names() {
  std::vector<std::string> names;
  for (const Tunable& tunable : cooperative_tunables()) names.push_back(tunable.name);
  return names;
}

// Of the lines that take more local memory, whichever way the operands lie.
std::uint64_t cooperative_local_bytes(const Config& config) {
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/common/cooperative_tiles.def"
  constexpr std::uint32_t kMost = 1024;  // keeps every product below in 32 bits
  for (const std::uint32_t value : {BLOCK_M, BLOCK_N, BLOCK_K, MATRIX_M, WG_X}) {
    if (value > kMost) return 0;
  }
  if (!(COOPERATIVE_DIVISORS) || !(COOPERATIVE_VALID)) return 0;
  std::uint64_t bytes = 0;
  for (const std::uint32_t A_BY_TERMS : {0U, 1U}) {
    for (const std::uint32_t B_BY_TERMS : {0U, 1U})
      bytes = std::max(bytes, std::uint64_t{16} * (COOPERATIVE_AREA));
  }
  return bytes;
}

std::vector<Config> cooperative_configs(const Problem& problem, const DeviceProfile& profile,
                                        std::span<const CooperativeCut> cuts) {
  std::vector<Config> list;
  for (const MatrixShape& shape : shapes(problem, profile)) {
    for (const CooperativeCut& cut : cuts) {
      const std::uint32_t groups = cut.block_m / cut.group_m * (cut.block_n / cut.group_n);
      const Config config{{"BLOCK_M", cut.block_m}, {"BLOCK_N", cut.block_n},
                          {"BLOCK_K", cut.block_k}, {"GROUP_M", cut.group_m},
                          {"GROUP_N", cut.group_n}, {"LANES", profile.subgroup_size},
                          {"MATRIX_M", shape.m},    {"MATRIX_N", shape.n},
                          {"MATRIX_K", shape.k},    {"WG_X", groups * profile.subgroup_size}};
      const std::uint64_t bytes = cooperative_local_bytes(config);
      if (bytes != 0 && bytes <= profile.local_memory && config.group().x <= profile.max_group_size)
        list.push_back(config);
    }
  }
  return list;
}

std::vector<Config> cooperative_cuts(const Problem& problem, const DeviceProfile& profile) {
  std::vector<CooperativeCut> cuts{
      {128, 128, 32, 64, 32}, {128, 128, 32, 64, 64}, {64, 64, 32, 32, 32}, {32, 64, 32, 16, 32}};
  // A step's operands must arrive while the products of one are taken: of 64 terms they do on an
  // H200.
  if (profile.vendor_id == kVendorNvidia) cuts.insert(cuts.begin(), {128, 128, 64, 32, 64});
  // By Mesa's compiler, 64 by 64 of a sub-group take 17 to 26 % fewer cycles for a product than 64
  // by 32 on RDNA 3, 22 to 33 % on RDNA 4; 192 and 120 registers leave four and six waves.
  constexpr std::uint32_t kRdna3Registers = 192;
  if (profile.vendor_id == kVendorAmd && kernel::group_budget(profile).registers >= kRdna3Registers)
    std::swap(cuts[0], cuts[1]);
  // 128 registers to an item, of as many floats as a sub-group has lanes; by Mesa's compiler.
  if (profile.vendor_id == kVendorIntel && profile.subgroup_size <= 8) {
    cuts = {{64, 64, 16, 16, 16}, {32, 32, 16, 8, 16}};
  } else if (profile.vendor_id == kVendorIntel) {
    // With 16 lanes, 16 by 32 take as many cycles as 16 by 16, and nothing spills; 32 by 32 spill
    // 148 registers and more.
    cuts = {{64, 128, 32, 16, 32}, {64, 64, 32, 16, 16}, {32, 32, 32, 16, 16}};
  }
  if (is_cpu(profile)) cuts = {{16, 32, 16, 16, 16}};  // they only check these kernels
  return cooperative_configs(problem, profile, cuts);
}

Refusal rejects_cooperative_cut(const Problem& problem, const Config& config,
                                const DeviceProfile& profile) {
  if (Refusal no = kernel::rejects_matrices(problem, config, profile)) return no;
  if (cooperative_local_bytes(config) == 0)
    return "has a work-group that does not divide into matrices "
           "(operations/common/cooperative_tiles.h)";
  return std::nullopt;
}

Dim3 groups_of_units(std::uint64_t units) {
  constexpr std::uint64_t kMostGroups = 65535;  // of a launch along an axis
  if (units == 0) return {0, 0, 0};
  const auto x = static_cast<std::uint32_t>(std::min(units, kMostGroups));
  return {x, static_cast<std::uint32_t>((units + x - 1) / x)};
}

}  // namespace tessera::operations
