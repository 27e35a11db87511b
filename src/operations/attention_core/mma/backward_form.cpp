// SPDX-License-Identifier: Apache-2.0
// Passes and refusals of the backward variants of matrix instructions.
#include "operations/attention_core/mma/backward_form.hpp"

#include <utility>

#include "operations/attention_core/mma/forward.h"

namespace tessera::operations::attention {
namespace {

// No map: groups look at the rows' intervals instead.
BackwardTiling tiling(const Problem& /*problem*/, const Config& /*config*/) {
  return {.map = {.maps = false}};
}

std::vector<Define> constants(const Problem& problem, const Config& /*config*/) {
  const AttentionProblem& call = call_of(problem);
  return {{"HEAD_DIM", head_dim(problem)},
          {"VALUE_DIM", value_dim(problem)},
          {"ALIGNED", is_aligned(problem, 8) ? 1U : 0U},
          {"GENERAL_SCORE", call.policies || call.soft_cap > 0 ? 1U : 0U}};
}

Pass mma_pass(const AttentionSlots& slots, const MmaBackwardForm& form, const std::string& kernel,
              bool policies) {
  Pass pass = backward_pass(kernel, tiling, policies);
  pass.opencl = {.file = "attention/mma/" + form.kernels + "_" + kernel + ".cl",
                 .entry = "attention_mma_" + form.kernels + "_" + kernel};
  pass.constants = constants;
  pass.bindings = {slots.query, slots.key, slots.value, slots.output_gradient, slots.log_sum_exp};
  return pass;
}

// The scratch buffer, and the operands of the policies behind it.
void bind_scratch(Pass& pass, const AttentionSlots& slots, bool policies) {
  std::vector<std::size_t> bindings = policy_bindings(slots);
  if (!policies) bindings = {kScratch};
  pass.bindings.insert(pass.bindings.end(), bindings.begin(), bindings.end());
}

Pass keys_pass(const AttentionSlots& slots, const MmaBackwardForm& form, bool policies) {
  Pass pass = mma_pass(slots, form, "keys", policies);
  pass.bindings.push_back(slots.key_gradient);
  pass.bindings.push_back(slots.value_gradient);
  bind_scratch(pass, slots, policies);
  pass.groups = [form, policies](const Problem& problem, const Config& config) {
    const AttentionProblem& call = call_of(problem);
    if (!is_for(problem, policies)) return Dim3{0, 1, 1};
    return Dim3{ceil_div(call.kv_len, form.geometry(problem, config).own_keys),
                static_cast<std::uint32_t>(call.kv_heads), static_cast<std::uint32_t>(call.batch)};
  };
  return pass;
}

Pass queries_pass(const AttentionSlots& slots, const MmaBackwardForm& form, bool policies) {
  Pass pass = mma_pass(slots, form, "queries", policies);
  pass.bindings.push_back(slots.query_gradient);
  bind_scratch(pass, slots, policies);
  pass.groups = [form, policies](const Problem& problem, const Config& config) {
    return is_for(problem, policies) ? row_groups(problem, form.geometry(problem, config).own_rows)
                                     : Dim3{0, 1, 1};
  };
  return pass;
}

Refusal rejects(const MmaBackwardForm& form, const Problem& problem, const Config& config,
                const DeviceProfile& profile) {
  const AttentionProblem& call = call_of(problem);
  if (problem.has(call.slots.bias_gradient)) return "leaves no gradients of a bias";
  if ((call.features & POLICY_UNNORMALIZED) != 0)
    return "takes outputs that are divided by the sum of their weights";
  const MmaBackwardGeometry geometry = form.geometry(problem, config);
  if (!geometry.valid)
    return "has no such tiles (operations/attention_core/mma/" + form.kernels + ".h)";
  if (geometry.registers > ATTN_MMA_MOST_REGISTERS) {
    return "needs " + std::to_string(geometry.registers) + " registers for matrices, and has " +
           std::to_string(ATTN_MMA_MOST_REGISTERS);
  }
  const std::uint32_t most_local_bytes = form.most_local_bytes(profile);
  if (geometry.local_bytes > most_local_bytes) {
    return "needs " + std::to_string(geometry.local_bytes) + " bytes of work-group memory, and " +
           std::to_string(most_local_bytes) + " are there";
  }
  return rejects_long_offsets(problem, profile,
                              backward_scratch_bytes(problem, tiling(problem, config)));
}

}  // namespace

Variant mma_backward_form(const AttentionSlots& slots, const MmaBackwardForm& form) {
  Variant variant;
  variant.name = form.name;
  variant.needs = {.backends = {Backend::kOpenCL},
                   .features = Feature::kNvidiaPtx | Feature::kMmaSync};
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.rounds_factors = true;
  variant.passes = list_of(rows_pass(slots), delta_pass(slots, tiling), peaks_pass(slots, tiling),
                           keys_pass(slots, form, false), queries_pass(slots, form, false),
                           keys_pass(slots, form, true), queries_pass(slots, form, true));
  for (Pass& pass : policy_gradient_passes(slots, tiling))
    variant.passes.push_back(std::move(pass));
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return backward_scratch_bytes(problem, tiling(problem, config));
  };
  variant.rejects = [form](const Problem& problem, const Config& config,
                           const DeviceProfile& profile) {
    return rejects(form, problem, config, profile);
  };
  return variant;
}

}  // namespace tessera::operations::attention
