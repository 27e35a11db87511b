// SPDX-License-Identifier: Apache-2.0
// Which matrices the kernels of cooperative matrices take, and how their cuts suit a GPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "kernel/gpu.hpp"
#include "operations/attention_core/launch.hpp"

namespace tessera::operations::attention {

// By the estimates: tiles that need 264 by it compiled to 251 on an H200.
inline constexpr std::uint32_t kMostRegisters = 264;

// The device's shapes for this call, largest first: an instruction of them does most.
inline std::vector<MatrixShape> matrices_for(const Problem& problem, const DeviceProfile& profile,
                                             bool registers) {
  std::vector<MatrixShape> found;
  for (const MatrixShape& shape : profile.matrix_shapes) {
    if (shape.input == problem.dtype && shape.n % 8 == 0 && shape.k % 8 == 0 &&
        (!registers || shape.n == shape.k)) {
      found.push_back(shape);
    }
  }
  std::ranges::stable_sort(found, std::ranges::greater{},
                           [](const MatrixShape& s) { return s.m * s.n * s.k; });
  return found;
}

// 0 for a cut that suits the registers and the local memory of the GPU's cores, kSpills for one
// that does not fit; between them the registers, where few groups share a core.
inline constexpr std::uint32_t kSpills = std::numeric_limits<std::uint32_t>::max();
inline std::uint32_t strain_of(const Problem& problem, const DeviceProfile& profile,
                               std::uint32_t registers, std::uint64_t local_bytes,
                               std::uint32_t items) {
  const kernel::GroupBudget budget = kernel::group_budget(profile);
  // Operands of policies, and the row that they belong to.
  constexpr std::uint32_t kPolicyRegisters = 16;
  const std::uint32_t taken = registers + (call_of(problem).policies ? kPolicyRegisters : 0);
  if (taken > budget.spills_from) return kSpills;
  const bool well =
      taken <= budget.registers && std::uint64_t{128} * local_bytes / items <= budget.local_bytes;
  return well ? 0 : taken;
}

}  // namespace tessera::operations::attention
