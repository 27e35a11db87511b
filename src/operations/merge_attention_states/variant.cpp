// SPDX-License-Identifier: Apache-2.0
// attention_states: LANES items for each row.
#include <algorithm>
#include <string>
#include <utility>

#include "kernel/gpu.hpp"
#include "kernel/option_access.hpp"
#include "kernel/tunable_list.hpp"
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

// PoCL runs the items of a group one after the other.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const auto& call = problem.as<StatesProblem>();
  std::vector<Config> configs;
  const auto add = [&](std::uint32_t items, std::uint32_t lanes, std::int64_t groups) {
    const std::int64_t lines = items / lanes;
    const std::int64_t most = std::max<std::int64_t>(1, (call.rows() + lines - 1) / lines);
    configs.push_back(
        {{"WG_X", items},
         {"LANES", lanes},
         {"GROUPS", static_cast<std::uint32_t>(std::clamp<std::int64_t>(groups, 1, most))}});
  };
  const std::int64_t units = kernel::compute_units_of(profile);
  if (is_cpu(profile)) {
    const bool is_vulkan = profile.backend == Backend::kVulkan;
    add(is_vulkan ? 32 : 1, is_vulkan ? 8 : 1, units * 16);
    return configs;
  }
  const auto vectors = static_cast<std::uint64_t>((call.dim + 3) / 4);
  const auto lanes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(kernel::next_power_of_two(vectors), 32));
  add(256, lanes, units * 32);
  if (lanes > 2) add(256, lanes / 2, units * 32);
  return configs;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const std::uint32_t items = config.group().x, lanes = config.at("LANES");
  if (lanes == 0 || (lanes & (lanes - 1)) != 0 || items % lanes != 0)
    return "takes work-groups of whole rows of a power of two of items, and LANES is " +
           std::to_string(lanes);
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
    const std::int64_t rows = problem.as<StatesProblem>().rows();
    const std::uint32_t groups = ceil_div(rows, config.group().x / config.at("LANES"));
    return Dim3{std::min(groups, config.at("GROUPS"))};
  };
  pass.args = argument_bytes_of;

  Variant variant;
  variant.name = "rows";
  variant.idea = "weights of a row's parts from their log-sum-exps, then vectors of each part";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = {
#include "operations/merge_attention_states/tunables.def"
      {.id = 31, .name = "GROUPS", .fallback = 1, .launch_only = true}};
  variant.passes = {std::move(pass)};
  variant.space = space;
  variant.local_bytes = [](const Problem&, const Config& config) {
    return std::uint64_t{sizeof(float)} * config.group().x;
  };
  variant.rejects = rejects;
  return {.variant = std::move(variant),
          .rule = {.why = "runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; },
                   .config =
                       [](const Problem& problem, const DeviceProfile& profile) {
                         return space(problem, profile).front();
                       }}};
}

}  // namespace tessera::operations::attention_states
