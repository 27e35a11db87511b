// SPDX-License-Identifier: Apache-2.0
#include "operations/attention_core/cooperative/cuts.hpp"

#include <algorithm>
#include <utility>

#include "kernel/config_order.hpp"
#include "kernel/gpu.hpp"
#include "kernel/matrices.hpp"

namespace tessera::operations::attention {
namespace {

constexpr std::uint32_t kMostColumns = 256;
// By the estimates: tiles that need 264 by it compiled to 251 on an H200.
constexpr std::uint32_t kMostRegisters = 264;

// The device's shapes for this call, largest first: an instruction of them does most.
std::vector<MatrixShape> matrices_for(const Problem& problem, const DeviceProfile& profile,
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

bool fits(const Config& config, const DeviceProfile& profile, const CutCosts& costs) {
  return costs.valid && costs.local_bytes <= profile.local_memory &&
         costs.registers <= kMostRegisters && config.group().x <= profile.max_group_size;
}

}  // namespace

Config cooperative_cut(const DeviceProfile& profile, std::uint32_t subgroups, std::uint32_t buffers,
                       std::uint32_t prefetch, Config own) {
  own.set("WG_X", subgroups * profile.subgroup_size);
  own.set("LANES", profile.subgroup_size);
  own.set("BUFFERS", buffers);
  own.set("PREFETCH", prefetch);
  return own;
}

std::vector<Config> cooperative_space(const Problem& problem, const DeviceProfile& profile,
                                      bool registers, const std::vector<Config>& cuts,
                                      const CostsOf& costs) {
  std::vector<Config> configs;
  for (const MatrixShape& shape : matrices_for(problem, profile, registers)) {
    for (Config config : cuts) {
      config.set("MATRIX_M", shape.m);
      config.set("MATRIX_N", shape.n);
      config.set("MATRIX_K", shape.k);
      if (fits(config, profile, costs(config, 0))) configs.push_back(std::move(config));
    }
  }
  if (is_gpu(profile)) {
    kernel::sort_configs(
        configs, [&](const Config& config) { return strain_of(problem, profile, config, costs); });
  }
  return configs;
}

std::uint32_t strain_of(const Problem& problem, const DeviceProfile& profile, const Config& config,
                        const CostsOf& costs) {
  const CutCosts cost = costs(config, kernel::lanes_of_a_matrix(profile));
  const kernel::GroupBudget budget = kernel::group_budget(profile);
  // Operands of policies, and the row that they belong to.
  constexpr std::uint32_t kPolicyRegisters = 16;
  const std::uint32_t taken = cost.registers + (call_of(problem).policies ? kPolicyRegisters : 0);
  if (taken > budget.spills_from) return kSpills;
  const bool well = taken <= budget.registers &&
                    std::uint64_t{128} * cost.local_bytes / config.group().x <= budget.local_bytes;
  return well ? 0 : taken;
}

std::vector<Define> cooperative_constants(const Problem& problem, const Config& /*config*/) {
  return {{"HEAD_DIM", head_dim(problem)},
          {"VALUE_DIM", value_dim(problem)},
          {"ALIGNED", is_aligned(problem, 8) ? 1U : 0U},
          {"CAPPED", call_of(problem).soft_cap > 0 ? 1U : 0U}};
}

Requirements cooperative_needs(bool registers) {
  Requirements needs = kernel::matrix_needs();
  if (registers) needs.features = needs.features | Feature::kMatrixRegisters;
  return needs;
}

Refusal rejects_cooperative(const Problem& problem, const Config& config,
                            const DeviceProfile& profile, bool registers, bool valid,
                            const std::string& geometry) {
  const AttentionProblem& call = call_of(problem);
  if (registers && (call.policies || call.features != 0))
    return "takes causal masks, windows and a soft cap, and no other policy";
  if (head_dim(problem) > kMostColumns || value_dim(problem) > kMostColumns)
    return "takes dims up to 256, not " + std::to_string(head_dim(problem)) + " and " +
           std::to_string(value_dim(problem));
  if (Refusal no = kernel::rejects_matrices(problem, config, profile)) return no;
  if (valid) return std::nullopt;
  return "has a work-group that does not divide into matrices "
         "(operations/attention_core/cooperative/" +
         geometry + ")";
}

}  // namespace tessera::operations::attention
