// SPDX-License-Identifier: Apache-2.0
// dispatch, combine and its gradient: LANES items for each row.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "kernel/tunable_list.inc"
#include "operations/common/lanes.hpp"
#include "operations/common/launch.hpp"
#include "operations/moe/rows.hpp"
#include "operations/moe/rows/args.h"

namespace tessera::operations::moe {
namespace {

const RowsProblem& call_of(const Problem& problem) { return problem.as<RowsProblem>(); }
abi::u32 narrow(std::int64_t value) { return static_cast<abi::u32>(value); }

abi::u32 offset_of(const Problem& problem, std::size_t slot) {
  return problem.has(slot) ? narrow(problem.spec(slot).offset) : 0U;
}
abi::u32 stride_of(const Problem& problem, std::size_t slot) {
  return problem.has(slot) ? narrow(problem.spec(slot).strides[0]) : 0U;
}

abi::MoeRowsArgs arguments(const Problem& problem) {
  const RowsProblem& call = call_of(problem);
  const bool dispatch = call.moves == Moves::kDispatch;
  const std::size_t tokens = dispatch ? kFrom : kTo, rows = dispatch ? kTo : kFrom;
  const std::size_t to = call.moves == Moves::kCombineBackward ? std::size_t{kGradRows} : rows;
  return {.tokens = narrow(call.tokens),
          .top_k = narrow(call.top_k),
          .experts = narrow(call.experts),
          .rows = narrow(call.rows),
          .dim = narrow(call.dim),
          .weighted = problem.has(kChoiceWeights) ? 1U : 0U,
          .ids_offset = offset_of(problem, kExpertIds),
          .slots_offset = offset_of(problem, kExpertSlots),
          .starts_offset = offset_of(problem, kStarts),
          .weights_offset = offset_of(problem, kChoiceWeights),
          .token_offset = offset_of(problem, tokens),
          .token_stride = stride_of(problem, tokens),
          .row_offset = offset_of(problem, rows),
          .row_stride = stride_of(problem, rows),
          .to_offset = offset_of(problem, to),
          .to_stride = stride_of(problem, to),
          .grad_weights_offset = offset_of(problem, kGradChoiceWeights),
          .errors = 0};
}

// Elements that all vectors of rows lie at multiples of: the constant ALIGNED.
std::uint32_t alignment_of(const Problem& problem) {
  std::int64_t all = call_of(problem).dim;
  for (const std::size_t slot : {kFrom, kTo, kGradRows}) {
    if (slot >= problem.operands.size() || !problem.has(slot)) continue;
    all |= problem.spec(slot).offset | problem.spec(slot).strides[0];
  }
  if (all % 8 == 0 && size_of(problem.dtype) == 2) return 2;
  return all % 4 == 0 ? 1 : 0;
}

Pass rows_pass(const std::string& name, std::vector<std::size_t> bindings,
               std::int64_t (RowsProblem::*count)() const) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = "moe/rows/" + name + ".cl", .entry = "moe_" + name};
  pass.vulkan = {.file = "moe/rows/" + name + ".comp", .entry = "main"};
  pass.bindings = std::move(bindings);
  pass.specialized_on = {{"LANES", "ALIGNED"}};
  pass.axes = dtype_axes;
  pass.constants = [](const Problem& problem, const Config&) -> std::vector<Define> {
    return {{"ALIGNED", alignment_of(problem)}};
  };
  pass.groups = [count](const Problem& problem, const Config& config) {
    return lane_groups((call_of(problem).*count)(), config);
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(arguments(problem));
  };
  return pass;
}

// Of an item for each row or choice.
Pass list_pass(const std::string& name, std::vector<std::size_t> bindings,
               std::int64_t (RowsProblem::*count)() const) {
  Pass pass = rows_pass(name, std::move(bindings), count);
  pass.specialized_on = std::vector<std::string>{};
  pass.axes = {};
  pass.constants = {};
  pass.group_size = [](const Config&) { return Dim3{64}; };
  pass.groups = [count](const Problem& problem, const Config&) {
    return Dim3{std::min(ceil_div((call_of(problem).*count)(), 64), 4096U)};
  };
  return pass;
}

Pass raising(Pass pass) {
  pass.errors_at = offsetof(abi::MoeRowsArgs, errors);
  return pass;
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  constexpr LaneCut kCuts[] = {{256, 1, 32}, {256, 2, 32}};
  const RowsProblem& call = call_of(problem);
  const std::int64_t elements = alignment_of(problem) == 2 ? 8 : 4;
  return lane_space(std::max(call.rows, call.choices()), (call.dim + elements - 1) / elements, 128,
                    kCuts, profile);
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (Refusal no = rejects_lanes(config)) return no;
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  return rejects_long_operands(problem, profile);
}

}  // namespace

Way rows_way(Moves moves) {
  constexpr auto kRows = &RowsProblem::row_count;
  constexpr auto kChoices = &RowsProblem::choices;
  Variant variant;
  variant.name = "rows";
  variant.idea = "the choice of each row, then vectors of four";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = {
#include "operations/moe/rows/rows.def"
      {.id = 31, .name = "GROUPS", .fallback = 1, .launch_only = true}};
  if (moves == Moves::kCombine) {
    variant.passes = list_of(raising(rows_pass(
        "gather", {kExpertIds, kExpertSlots, kStarts, kChoiceWeights, kFrom, kTo, kErrors},
        &RowsProblem::token_count)));
  } else {
    const bool backward = moves == Moves::kCombineBackward;
    variant.passes = list_of(
        list_pass("clear", {kScratch}, kRows),
        raising(list_pass("map", {kExpertIds, kExpertSlots, kStarts, kScratch, kErrors}, kChoices)),
        rows_pass("spread",
                  {kExpertIds, kExpertSlots, kStarts, backward ? kTo : kFrom, kChoiceWeights,
                   kScratch, backward ? kGradRows : kTo},
                  kRows));
    if (backward) {
      Pass dots = raising(rows_pass(
          "dots", {kExpertIds, kExpertSlots, kStarts, kTo, kFrom, kGradChoiceWeights, kErrors},
          kChoices));
      dots.groups = [](const Problem& problem, const Config& config) {
        if (!problem.has(kGradChoiceWeights)) return Dim3{0, 0, 0};
        return lane_groups(call_of(problem).choices(), config);
      };
      variant.passes.push_back(std::move(dots));
    }
    variant.scratch_bytes = [](const Problem& problem, const Config&) {
      return 4 * static_cast<std::uint64_t>(std::max<std::int64_t>(call_of(problem).rows, 4));
    };
  }
  variant.space = space;
  variant.local_bytes = [](const Problem&, const Config& config) {
    return std::uint64_t{sizeof(float)} * config.group().x;
  };
  variant.rejects = rejects;
  return {.variant = std::move(variant),
          .rule = {.why = "runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; }}};
}

}  // namespace tessera::operations::moe
