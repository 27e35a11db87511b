// SPDX-License-Identifier: Apache-2.0
#include "operations/sparse_core/stages.hpp"

#include <algorithm>
#include <utility>

#include "operations/common/launch.hpp"

namespace tessera::operations::matmul {
namespace {

using Step = SparseStage::Step;

abi::u32 narrow_step(std::int64_t value) { return static_cast<abi::u32>(value); }

// In words, behind the results and their counters: entries of two words are read at once.
constexpr std::int64_t table_start(std::int64_t results) {
  return 4 * (1 + results) + (results + 1) / 2 * 2;
}

// Steps of the sparse matrix: along its k and n, and from a block to the next.
struct SparseSteps {
  std::int64_t k = 0, n = 0, block = 0;
};

SparseSteps steps_of_values(const TensorSpec& spec, bool on_left) {
  if (spec.shape.size() == 1) return {.block = spec.strides[0]};
  return {.k = spec.strides[on_left ? 2 : 1],
          .n = spec.strides[on_left ? 1 : 2],
          .block = spec.strides[0]};
}

// A dense operand [rows, columns] of the product on the right.
abi::GroupedView dense_view(const TensorSpec& spec, bool on_left, bool turned) {
  abi::GroupedView view{.offset = narrow_step(spec.offset),
                        .row = narrow_step(spec.strides[on_left ? 1 : 0]),
                        .column = narrow_step(spec.strides[on_left ? 0 : 1]),
                        .group = 0};
  if (turned) std::swap(view.row, view.column);
  return view;
}

abi::GroupedView values_view(const TensorSpec& spec, bool on_left, bool turned) {
  const SparseSteps steps = steps_of_values(spec, on_left);
  abi::GroupedView view{.offset = narrow_step(spec.offset),
                        .row = narrow_step(steps.k),
                        .column = narrow_step(steps.n),
                        .group = narrow_step(steps.block)};
  if (turned) std::swap(view.row, view.column);
  return view;
}

// Of vectors along a row of a view whose blocks begin at multiples of `place`.
bool has_vectors(const abi::GroupedView& view, const abi::SparsePlace& place, bool along_row) {
  return (along_row ? view.column : view.row) == 1 &&
         (view.offset | place.row | place.column | place.block |
          (along_row ? view.row : view.column)) %
                 4 ==
             0;
}

// What a block's k and n step over, as places of its row and column in the sparse matrix.
abi::SparsePlace place_of(const SparseProblem& call, std::int64_t k, std::int64_t n,
                          std::int64_t block) {
  abi::SparsePlace place{narrow_step(k), narrow_step(n), narrow_step(block)};
  if (call.on_left) std::swap(place.row, place.column);
  return place;
}

void place_list(const Problem& problem, const SparseProblem& call, Step step,
                abi::SparseListArgs& list, std::int64_t results) {
  const TensorSpec& indices = problem.spec(call.slots.indices);
  const bool by_row = (step == Step::kGradDense) != call.on_left;
  list.blocks = narrow_step(call.blocks);
  list.results = narrow_step(results);
  list.by = step == Step::kGradValues ? SPARSE_BY_BLOCK : by_row ? SPARSE_BY_ROW : SPARSE_BY_COLUMN;
  list.words = narrow_step(4 * (1 + results));
  list.table = narrow_step(table_start(results));
  list.index_offset = narrow_step(indices.offset);
  list.index_step = narrow_step(indices.strides[0]);
  list.index_side = narrow_step(indices.strides[1]);
  list.rows = narrow_step(call.on_left ? call.blocks_n() : call.blocks_k());
  list.columns = narrow_step(call.on_left ? call.blocks_k() : call.blocks_n());
  if (!problem.has(call.slots.mask)) return;
  const TensorSpec& mask = problem.spec(call.slots.mask);
  list.masked = 1;
  list.mask_offset = narrow_step(mask.offset);
  list.mask = {narrow_step(mask.strides[0]), narrow_step(mask.strides[1]), 0};
}

std::int64_t most_results(const SparseProblem& call) {
  return std::max({call.blocks_k(), call.blocks_n(), call.blocks});
}

Pass sparse_list_pass(const SparseSlots& slots, const SparseStage& stage) {
  Pass pass;
  pass.name = "list " + stage.name;
  pass.opencl = {.file = "matmul/sparse/list.cl", .entry = "sparse_list"};
  pass.vulkan = {.file = "matmul/sparse/list.comp", .entry = "main"};
  pass.bindings = {slots.indices, slots.mask, kScratch, kErrors};
  pass.specialized_on = std::vector<std::string>{};
  pass.group_size = [](const Config&) { return Dim3{64}; };
  pass.groups = [stage](const Problem& problem, const Config&) {
    return sparse_product(problem, stage) ? Dim3{1} : Dim3{0, 0, 0};
  };
  pass.errors_at = offsetof(abi::SparseListArgs, errors);
  pass.args = [stage](const Problem& problem, const Config&) {
    const auto product = sparse_product(problem, stage);
    return argument_bytes(product ? product->list : abi::SparseListArgs{});
  };
  return pass;
}

}  // namespace

std::vector<SparseStage> sparse_stages(const SparseSlots& slots) {
  if (!slots.backward())
    return {{.name = "forward", .a = slots.dense, .b = slots.values, .result = slots.output}};
  return {{.name = "grad_dense",
           .step = Step::kGradDense,
           .a = slots.grad_output,
           .b = slots.values,
           .result = slots.grad_dense},
          {.name = "grad_values",
           .step = Step::kGradValues,
           .a = slots.dense,
           .b = slots.grad_output,
           .result = slots.grad_values}};
}

std::optional<SparseProduct> sparse_product(const Problem& problem, const SparseStage& stage) {
  if (!problem.has(stage.result)) return std::nullopt;
  const auto& call = problem.as<SparseProblem>();
  const bool left = call.on_left;
  const TensorSpec &a = problem.spec(stage.a), &b = problem.spec(stage.b);
  const TensorSpec& result = problem.spec(stage.result);
  SparseProduct product{.a = a.dtype, .b = b.dtype};
  abi::GroupedArgs& args = product.args;
  const auto set = [&](std::int64_t results, std::int64_t m, std::int64_t n, std::int64_t k) {
    product.results = results;
    product.m = m;
    product.n = n;
    product.k = k;
  };
  if (stage.step == Step::kGradValues) {
    set(call.blocks, call.block_k, call.block_n, call.m);
    args.a = dense_view(a, left, true);
    args.b = dense_view(b, left, false);
    args.result = values_view(result, left, false);
    product.list.a = place_of(call, call.block_k * args.a.row, 0, 0);
    product.list.b = place_of(call, 0, call.block_n * args.b.column, 0);
  } else {
    const bool forward = stage.step == Step::kForward;
    const std::int64_t terms = forward ? call.block_k : call.block_n;
    const std::int64_t columns = forward ? call.block_n : call.block_k;
    set(forward ? call.blocks_n() : call.blocks_k(), call.m, columns, terms);
    args.a = dense_view(a, left, false);
    args.b = values_view(b, left, !forward);
    args.result = dense_view(result, left, false);
    args.result.group = narrow_step(columns * args.result.column);
    const std::int64_t along = terms * args.a.column;
    product.list.a = place_of(call, forward ? along : 0, forward ? 0 : along, 0);
    product.list.b = place_of(call, 0, 0, args.b.group);
    args.b.group = 0;  // the table has it
  }
  place_list(problem, call, stage.step, product.list, product.results);
  args.m = narrow_step(product.m);
  args.n = narrow_step(product.n);
  args.k = narrow_step(product.k);
  args.table = product.list.table;
  args.result_type = dtype_axis(result.dtype);
  const auto mark = [&](bool holds, abi::u32 feature) { args.features |= holds ? feature : 0U; };
  mark(has_vectors(args.a, product.list.a, true), GROUPED_A_BY_TERMS);
  mark(has_vectors(args.a, product.list.a, false), GROUPED_A_BY_ROWS);
  mark(has_vectors(args.b, product.list.b, false), GROUPED_B_BY_TERMS);
  mark(has_vectors(args.b, product.list.b, true), GROUPED_B_BY_COLUMNS);
  return product;
}

std::uint64_t sparse_scratch(const Problem& problem) {
  const auto& call = problem.as<SparseProblem>();
  return 4 * static_cast<std::uint64_t>(table_start(most_results(call)) + 2 * call.blocks);
}

std::vector<Pass> sparse_passes(const SparseSlots& slots, Pass (*product_of)(const SparseStage&)) {
  std::vector<Pass> passes;
  for (const SparseStage& stage : sparse_stages(slots)) {
    passes.push_back(sparse_list_pass(slots, stage));
    passes.push_back(product_of(stage));
  }
  return passes;
}

std::vector<Define> sparse_constants(const Problem& problem, const SparseStage& stage) {
  const auto product = sparse_product(problem, stage);
  return {{"A_TYPE", dtype_axis(product ? product->a : DType::kF32)},
          {"B_TYPE", dtype_axis(product ? product->b : DType::kF32)}};
}

Refusal rejects_sparse(const Problem& problem, const DeviceProfile& profile) {
  if (Refusal no = rejects_long_operands(problem, profile, {})) return no;
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 2;
  const auto& call = problem.as<SparseProblem>();
  if (std::max({call.m, call.n, call.k}) > kMost || sparse_scratch(problem) >= std::uint64_t{1}
                                                                                   << 33)
    return "counts rows, columns and words of its list to 2^31";
  return std::nullopt;
}

}  // namespace tessera::operations::matmul
