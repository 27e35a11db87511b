// SPDX-License-Identifier: Apache-2.0
// attention_states: LANES items for each row.
#include <algorithm>
#include <string>
#include <utility>

#include "kernel/tunable_list.inc"
#include "operations/common/lanes.hpp"
#include "operations/common/launch.hpp"
#include "operations/merge_attention_states/args.h"
#include "operations/merge_attention_states/problem.hpp"

namespace tessera::operations::attention_states {
namespace {

abi::u32 narrow(std::int64_t value) { return static_cast<abi::u32>(value); }

abi::StateRows rows_of(const Problem& problem, std::size_t slot) {
  const StateStrides strides = strides_of(problem, slot);
  return {.offset = narrow(strides.offset),
          .part = narrow(strides.part),
          .batch = narrow(strides.batch),
          .token = narrow(strides.token),
          .head = narrow(strides.head)};
}

abi::MergeStatesArgs arguments(const Problem& problem) {
  const auto& call = problem.as<StatesProblem>();
  return {.rows = narrow(call.rows()),
          .heads = narrow(std::max<std::int64_t>(call.heads, 1)),
          .seq = narrow(std::max<std::int64_t>(call.seq, 1)),
          .dim = narrow(call.dim),
          .parts = narrow(call.parts),
          .has_other = call.has_other ? 1U : 0U,
          .has_merged = problem.has(kMerged) ? 1U : 0U,
          .outputs = rows_of(problem, kOutputs),
          .sums = rows_of(problem, kSums),
          .other = rows_of(problem, kOther),
          .other_sum = rows_of(problem, kOtherSum),
          .result = rows_of(problem, kOutput),
          .merged = rows_of(problem, kMerged)};
}

std::vector<std::byte> argument_bytes_of(const Problem& problem, const Config& /*config*/) {
  if (!problem.as<StatesProblem>().backward) return argument_bytes(arguments(problem));
  return argument_bytes(
      abi::MergeStatesBackwardArgs{.merge = arguments(problem),
                                   .grad_outputs = rows_of(problem, kGradOutputs),
                                   .grad_sums = rows_of(problem, kGradSums),
                                   .grad_other = rows_of(problem, kGradOther),
                                   .grad_other_sum = rows_of(problem, kGradOtherSum)});
}

// Every four elements of rows of outputs and their gradients.
bool is_aligned(const Problem& problem) {
  const auto& call = problem.as<StatesProblem>();
  std::int64_t all = call.dim;
  for (const std::size_t slot : {kOutputs, kOther, kOutput, kGradOutputs, kGradOther}) {
    if (slot >= problem.operands.size() || !problem.has(slot)) continue;
    const StateStrides at = strides_of(problem, slot);
    all |= at.offset | at.part | at.batch | at.token | at.head;
  }
  return all % 4 == 0;
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  constexpr LaneCut kCuts[] = {{256, 4, 32}, {256, 2, 32}, {256, 1, 32}};
  const auto& call = problem.as<StatesProblem>();
  return lane_space(call.rows(), (call.dim + 3) / 4, 32, kCuts, profile);
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (Refusal no = rejects_lanes(config)) return no;
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  return rejects_long_operands(problem, profile);
}

}  // namespace

Way states_way(bool backward) {
  const std::string name = backward ? "backward" : "merge";
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = "attention_states/" + name + ".cl",
                 .entry = backward ? "merge_states_backward" : "merge_states"};
  pass.vulkan = {.file = "attention_states/" + name + ".comp", .entry = "main"};
  pass.bindings = {kOutputs, kSums, kOther, kOtherSum, kOutput, kMerged};
  if (backward)
    pass.bindings.insert(pass.bindings.end(), {kGradOutputs, kGradSums, kGradOther, kGradOtherSum});
  pass.axes = dtype_axes;
  pass.constants = [](const Problem& problem, const Config&) -> std::vector<Define> {
    return {{"ALIGNED", is_aligned(problem) ? 1U : 0U}};
  };
  pass.groups = [](const Problem& problem, const Config& config) {
    return lane_groups(problem.as<StatesProblem>().rows(), config);
  };
  pass.args = argument_bytes_of;

  Variant variant;
  variant.name = "rows";
  variant.idea = "weights of a row's parts from their log-sum-exps, then vectors of each part";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = {
#include "operations/merge_attention_states/tunables.def"
      {.id = 31, .name = "GROUPS", .fallback = 1, .launch_only = true}};
  variant.passes = list_of(std::move(pass));
  variant.space = space;
  variant.local_bytes = [](const Problem&, const Config& config) {
    return std::uint64_t{sizeof(float)} * config.group().x;
  };
  variant.rejects = rejects;
  return {.variant = std::move(variant),
          .rule = {.why = "runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; }}};
}

}  // namespace tessera::operations::attention_states
