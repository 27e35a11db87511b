// SPDX-License-Identifier: Apache-2.0
#include "operations/grouped_core/stages.hpp"

#include <algorithm>
#include <utility>

#include "operations/common/launch.hpp"

namespace tessera::operations::matmul {
namespace {

using Step = GroupedStage::Step;

constexpr std::uint32_t kListItems = 64;

abi::u32 narrow(std::int64_t value) { return static_cast<abi::u32>(value); }

// A matrix, [rows, columns] or turned.
abi::GroupedView matrix(const TensorSpec& spec, bool turned) {
  abi::GroupedView view{.offset = narrow(spec.offset),
                        .row = narrow(spec.strides[0]),
                        .column = narrow(spec.strides[1]),
                        .group = 0};
  if (turned) std::swap(view.row, view.column);
  return view;
}

// A matrix for each group, [groups, rows, columns] or turned.
abi::GroupedView matrices(const TensorSpec& spec, bool turned) {
  abi::GroupedView view{.offset = narrow(spec.offset),
                        .row = narrow(spec.strides[1]),
                        .column = narrow(spec.strides[2]),
                        .group = narrow(spec.strides[0])};
  if (turned) std::swap(view.row, view.column);
  return view;
}

bool is_vectorised(const abi::GroupedView& view, bool along_row) {
  return (along_row ? view.column : view.row) == 1 && view.offset % 4 == 0 && view.group % 4 == 0 &&
         (along_row ? view.row : view.column) % 4 == 0;
}

// Steps of a scale from the right; where it has one element along an axis, all of that share it.
std::int64_t step_of(const TensorSpec& scale, std::size_t from_right) {
  const std::size_t rank = scale.shape.size();
  if (from_right >= rank || scale.shape[rank - 1 - from_right] == 1) return 0;
  return scale.strides[rank - 1 - from_right];
}

void set_scales(const Problem& problem, const GroupedStage& stage, GroupedProduct& product) {
  const auto& call = problem.as<GroupedProblem>();
  abi::GroupedArgs& args = product.args;
  if (problem.dtype == DType::kI8) product.blocks = MATMUL_BLOCKS_WHOLE;
  if (call.scale_lhs.terms || call.scale_rhs.terms) product.blocks = MATMUL_BLOCKS_SCALED;
  const auto mark = [&](bool holds, abi::u32 feature) { args.features |= holds ? feature : 0U; };
  if (problem.has(stage.slots[kLeftScale])) {
    const TensorSpec& scale = problem.spec(stage.slots[kLeftScale]);
    args.scale_a = {.offset = narrow(scale.offset),
                    .row = narrow(step_of(scale, 1)),
                    .term = narrow(step_of(scale, 0))};
    mark(true, GROUPED_SCALE_A);
  }
  if (problem.has(stage.slots[kRightScale])) {
    const TensorSpec& scale = problem.spec(stage.slots[kRightScale]);
    const std::size_t columns = call.transpose_rhs ? 1 : 0;
    args.scale_b = {.offset = narrow(scale.offset),
                    .column = narrow(step_of(scale, columns)),
                    .term = narrow(step_of(scale, 1 - columns)),
                    .group = narrow(step_of(scale, 2))};
    mark(true, GROUPED_SCALE_B);
  }
  mark(call.scale_lhs.blocks, GROUPED_SCALE_ROWS);
  mark(call.scale_rhs.blocks, GROUPED_SCALE_COLUMNS);
  mark(product.blocks == MATMUL_BLOCKS_SCALED, GROUPED_SCALE_TERMS);
  mark(call.output == DType::kI32, GROUPED_WHOLE);
}

bool has_stage(const Problem& problem, const GroupedStage& stage) {
  if (!problem.has(stage.slots[kProduct])) return false;
  const auto& call = problem.as<GroupedProblem>();
  const bool turns = stage.step == Step::kGradRhs && !call.slots.transposed;
  return !turns || stage.turned == call.transpose_rhs;
}

}  // namespace

std::vector<GroupedStage> grouped_stages(const GroupedSlots& slots) {
  if (!slots.backward()) {
    return {{.name = "forward",
             .over_terms = slots.transposed,
             .slots = {slots.lhs, slots.rhs, slots.existing, slots.output, slots.scale_lhs,
                       slots.scale_rhs}}};
  }
  const auto lhs = slots.lhs, rhs = slots.rhs, output = slots.grad_output;
  if (slots.transposed) {
    return {{.name = "grad_lhs",
             .step = Step::kGradLhs,
             .slots = {rhs, output, kNoOperand, slots.grad_lhs, kNoOperand, kNoOperand}},
            {.name = "grad_rhs",
             .step = Step::kGradRhs,
             .slots = {lhs, output, kNoOperand, slots.grad_rhs, kNoOperand, kNoOperand}}};
  }
  return {{.name = "grad_lhs",
           .step = Step::kGradLhs,
           .slots = {output, rhs, kNoOperand, slots.grad_lhs, kNoOperand, kNoOperand}},
          {.name = "grad_existing_out",
           .step = Step::kGradExisting,
           .slots = {output, rhs, output, slots.grad_existing, kNoOperand, kNoOperand}},
          {.name = "grad_rhs",
           .step = Step::kGradRhs,
           .over_terms = true,
           .slots = {lhs, output, kNoOperand, slots.grad_rhs, kNoOperand, kNoOperand}},
          {.name = "grad_rhs turned",
           .step = Step::kGradRhs,
           .over_terms = true,
           .turned = true,
           .slots = {output, lhs, kNoOperand, slots.grad_rhs, kNoOperand, kNoOperand}}};
}

std::optional<GroupedProduct> grouped_product(const Problem& problem, const GroupedStage& stage) {
  if (!has_stage(problem, stage)) return std::nullopt;
  const auto& call = problem.as<GroupedProblem>();
  const auto spec = [&](GroupedRole role) -> const TensorSpec& {
    return problem.spec(stage.slots[role]);
  };
  GroupedProduct product;
  abi::GroupedArgs& args = product.args;
  const auto set = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    product.m = m;
    product.n = n;
    product.k = k;
  };
  if (stage.over_terms) {
    // The ragged axis is the last of the left operand: its columns are terms.
    const bool columns = call.slots.transposed;
    args.a = matrix(spec(kLeft), !columns);
    args.b = matrix(spec(kRight), false);
    args.result = matrices(spec(kProduct), false);
    if (problem.has(stage.slots[kAdded])) args.addend = matrices(spec(kAdded), false);
    set(stage.turned ? call.n : call.k, stage.turned ? call.k : call.n, call.m);
  } else if (stage.step == Step::kForward) {
    args.a = matrix(spec(kLeft), false);
    args.b = matrices(spec(kRight), call.transpose_rhs);
    args.result = matrix(spec(kProduct), false);
    if (problem.has(stage.slots[kAdded])) args.addend = matrix(spec(kAdded), false);
    set(call.m, call.n, call.k);
  } else if (stage.step == Step::kGradExisting) {
    args.a = args.addend = matrix(spec(kAdded), false);
    args.b = matrices(spec(kRight), false);
    args.result = matrix(spec(kProduct), false);
    set(call.m, call.n, 0);
  } else if (call.slots.transposed) {
    // grad_lhs^T = rhs grad_output^T, grad_rhs = lhs^T grad_output, of each group.
    const bool of_lhs = stage.step == Step::kGradLhs;
    args.a = matrix(spec(kLeft), !of_lhs);
    args.b = matrices(spec(kRight), of_lhs);
    args.result = matrix(spec(kProduct), of_lhs);
    set(call.m, of_lhs ? call.k : call.n, of_lhs ? call.n : call.k);
  } else {
    args.a = matrix(spec(kLeft), false);
    args.b = matrices(spec(kRight), !call.transpose_rhs);
    args.result = matrix(spec(kProduct), false);
    set(call.m, call.k, call.n);
  }
  for (const GroupedRole role : {kLeft, kRight, kAdded, kProduct})
    if (problem.has(stage.slots[role])) product.dtypes[role] = spec(role).dtype;
  args.m = narrow(product.m);
  args.n = narrow(product.n);
  args.k = narrow(product.k);
  args.addend_type = dtype_axis(product.dtypes[kAdded]);
  args.result_type = dtype_axis(product.dtypes[kProduct]);
  const auto mark = [&](bool holds, abi::u32 feature) { args.features |= holds ? feature : 0U; };
  mark(is_vectorised(args.a, true), GROUPED_A_BY_TERMS);
  mark(is_vectorised(args.a, false), GROUPED_A_BY_ROWS);
  mark(is_vectorised(args.b, false), GROUPED_B_BY_TERMS);
  mark(is_vectorised(args.b, true), GROUPED_B_BY_COLUMNS);
  mark(problem.has(stage.slots[kAdded]), GROUPED_ADDEND);
  if (stage.step == Step::kForward) set_scales(problem, stage, product);
  return product;
}

std::uint64_t grouped_items(const Problem& problem, const GroupedStage& stage, std::uint32_t tile) {
  const auto& call = problem.as<GroupedProblem>();
  const auto held = static_cast<std::uint64_t>(call.held);
  // Every range of rows may end within a tile: those of groups, and those before and behind.
  return stage.over_terms ? held : static_cast<std::uint64_t>(call.m) / tile + held + 2;
}

std::uint64_t grouped_scratch(const Problem& problem, std::uint32_t tile) {
  const auto& call = problem.as<GroupedProblem>();
  const std::uint64_t items = grouped_items(problem, {.over_terms = false}, tile);
  return 16 * (1 + items) + 4 * static_cast<std::uint64_t>(call.groups);
}

std::vector<Pass> grouped_passes(const GroupedSlots& slots, GroupedTile tile,
                                 Pass (*product_of)(const GroupedStage&)) {
  const std::vector<GroupedStage> stages = grouped_stages(slots);
  std::vector<Pass> passes;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (i == 0 || stages[i].over_terms != stages[i - 1].over_terms) {
      std::vector<GroupedStage> alike;
      std::ranges::copy_if(stages, std::back_inserter(alike), [&](const GroupedStage& other) {
        return other.over_terms == stages[i].over_terms;
      });
      passes.push_back(grouped_list_pass(slots, alike));
      passes.back().args = [stage = stages[i], tile](const Problem& problem, const Config& config) {
        return argument_bytes(list_arguments(problem, grouped_items(problem, stage, tile(config)),
                                             stage.over_terms ? 0 : tile(config)));
      };
    }
    passes.push_back(product_of(stages[i]));
    const auto& at = stages[i].slots;
    passes.back().bindings = {at[kLeft],    at[kRight],     kScratch,       at[kAdded],
                              at[kProduct], at[kLeftScale], at[kRightScale]};
  }
  return passes;
}

abi::GroupedListArgs list_arguments(const Problem& problem, std::uint64_t items,
                                    std::uint32_t tile) {
  const auto& call = problem.as<GroupedProblem>();
  const TensorSpec& sizes = problem.spec(call.slots.sizes);
  return {.sizes = narrow(sizes.offset),
          .sizes_step = narrow(sizes.strides[0]),
          .groups = narrow(call.groups),
          .first = narrow(call.first),
          .held = narrow(call.held),
          .rows = narrow(call.m),
          .tile = tile,
          .ends = narrow(static_cast<std::int64_t>(4 * (1 + items))),
          .errors = 0};
}

Pass grouped_list_pass(const GroupedSlots& slots, const std::vector<GroupedStage>& stages) {
  Pass pass;
  pass.name = stages.front().over_terms ? "list groups" : "list tiles";
  pass.opencl = {.file = "matmul/grouped/list.cl", .entry = "grouped_list"};
  pass.vulkan = {.file = "matmul/grouped/list.comp", .entry = "main"};
  pass.specialized_on = std::vector<std::string>{};
  pass.group_size = [](const Config&) { return Dim3{kListItems}; };
  pass.groups = [stages](const Problem& problem, const Config&) {
    const bool used = std::ranges::any_of(
        stages, [&](const GroupedStage& stage) { return has_stage(problem, stage); });
    return used ? Dim3{1} : Dim3{0, 0, 0};
  };
  pass.errors_at = offsetof(abi::GroupedListArgs, errors);
  pass.bindings = {slots.sizes, kScratch, kErrors};
  return pass;
}

abi::MatmulArgs matmul_arguments(const Problem& problem, const GroupedStage& stage) {
  const auto product = grouped_product(problem, stage);
  if (!product) return {};
  const abi::GroupedArgs& from = product->args;
  const auto view = [](const abi::GroupedView& of) {
    return abi::MatmulView{.offset = of.offset,
                           .row = of.row,
                           .column = of.column,
                           .batch0 = 0,
                           .batch1 = 0,
                           .batch2 = of.group};
  };
  abi::MatmulArgs args{};
  args.m = from.m;
  args.n = from.n;
  args.k = from.k;
  args.batches = args.batches2 = narrow(problem.as<GroupedProblem>().held);
  args.batches1 = args.sums = args.sums1 = args.splits = 1;
  args.alpha = args.beta = 1.0f;
  args.features = (from.features & GROUPED_ADDEND) != 0 ? MATMUL_ADDEND : 0U;
  args.types = from.addend_type << MATMUL_TYPE_ADDEND | from.result_type << MATMUL_TYPE_RESULT;
  args.a = view(from.a);
  args.b = view(from.b);
  args.addend = view(from.addend);
  args.result = view(from.result);
  return args;
}

Refusal rejects_grouped(const Problem& problem, const DeviceProfile& profile, std::uint32_t tile) {
  if (Refusal no = rejects_long_operands(problem, profile, {})) return no;
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 2;
  const auto& call = problem.as<GroupedProblem>();
  if (std::max({call.m, call.n, call.k, call.held}) > kMost || call.first > kMost - call.held)
    return "counts rows, columns and groups to 2^31";
  if (grouped_scratch(problem, tile) >= std::uint64_t{1} << 33)
    return "counts words of its work list to 2^31";
  return std::nullopt;
}

std::vector<Define> grouped_constants(const Problem& problem, const GroupedStage& stage) {
  const auto product = grouped_product(problem, stage);
  const auto type = [&](GroupedRole role) {
    return dtype_axis(product ? product->dtypes[role] : DType::kF32);
  };
  return {{"A_TYPE", type(kLeft)},
          {"B_TYPE", type(kRight)},
          {"RAGGED", static_cast<std::uint32_t>(stage.over_terms ? GROUPED_TERMS : GROUPED_ROWS)},
          {"BLOCKS", product ? product->blocks : MATMUL_BLOCKS_NONE}};
}

}  // namespace tessera::operations::matmul
