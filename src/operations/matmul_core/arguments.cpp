// SPDX-License-Identifier: Apache-2.0
#include "operations/matmul_core/arguments.hpp"

#include <algorithm>

#include "operations/common/launch.hpp"

namespace tessera::operations::matmul {
namespace {

abi::u32 narrow(std::int64_t value) { return static_cast<abi::u32>(value); }

abi::MatmulView view_arguments(const Product& product, std::size_t role) {
  const View& view = product.views[role];
  if (!view.present) return {};
  abi::MatmulView to{};
  to.offset = narrow(view.offset);
  to.row = narrow(view.row);
  to.column = narrow(view.column);
  abi::u32* const steps[] = {&to.batch0, &to.batch1, &to.batch2};
  std::size_t batch_axes = 0;
  for (const OuterAxis& axis : product.axes) batch_axes += axis.summed ? 0 : 1;
  for (std::size_t i = 0; i < batch_axes; ++i)
    *steps[3 - batch_axes + i] = narrow(product.axes[i].steps[role]);
  return to;
}

abi::u32 type_bits(const Product& product, Role role, abi::u32 shift) {
  return dtype_axis(product.views[role].dtype) << shift;
}

bool is_vectorised(const Product& product, Role role, bool along_row) {
  const View& view = product.views[role];
  if (!view.present || (along_row ? view.column : view.row) != 1) return false;
  if (view.offset % 4 != 0 || (along_row ? view.row : view.column) % 4 != 0) return false;
  return std::ranges::all_of(product.axes,
                             [&](const OuterAxis& axis) { return axis.steps[role] % 4 == 0; });
}

}  // namespace

abi::MatmulArgs arguments_of(const Product& product) {
  abi::MatmulArgs args{};
  args.m = narrow(product.m);
  args.n = narrow(product.n);
  args.k = narrow(product.k);
  args.batches = narrow(product.batches());
  args.sums = narrow(product.sums());
  args.batches1 = args.batches2 = args.sums1 = args.splits = 1;
  std::vector<const OuterAxis*> batches, sums;
  for (const OuterAxis& axis : product.axes) (axis.summed ? sums : batches).push_back(&axis);
  if (!batches.empty()) args.batches2 = narrow(std::max<std::int64_t>(batches.back()->size, 1));
  if (batches.size() > 1)
    args.batches1 = narrow(std::max<std::int64_t>(batches[batches.size() - 2]->size, 1));
  if (!sums.empty()) {
    args.sums1 = narrow(std::max<std::int64_t>(sums.back()->size, 1));
    args.a_sum1 = narrow(sums.back()->steps[kA]);
    args.b_sum1 = narrow(sums.back()->steps[kB]);
  }
  if (sums.size() > 1) {
    args.a_sum0 = narrow(sums.front()->steps[kA]);
    args.b_sum0 = narrow(sums.front()->steps[kB]);
  }
  args.alpha = static_cast<float>(product.alpha);
  args.beta = static_cast<float>(product.beta);
  args.features = product.features;
  const auto mark = [&](bool holds, abi::u32 feature) { args.features |= holds ? feature : 0U; };
  mark(product.views[kBias].present, MATMUL_BIAS);
  mark(product.views[kAddend].present, MATMUL_ADDEND);
  mark(product.views[kGate].present, MATMUL_GATE);
  mark(product.views[kResidual].present, MATMUL_RESIDUAL);
  mark(product.views[kBeside].present, MATMUL_BESIDE);
  mark(is_vectorised(product, kA, true), MATMUL_A_BY_TERMS);
  mark(is_vectorised(product, kA, false), MATMUL_A_BY_ROWS);
  mark(is_vectorised(product, kB, false), MATMUL_B_BY_TERMS);
  mark(is_vectorised(product, kB, true), MATMUL_B_BY_COLUMNS);
  const bool scales = product.terms() != 0;  // of no terms the sum is 0
  mark(scales && product.views[kScaleA].present, MATMUL_SCALE_A);
  mark(scales && product.views[kScaleB].present, MATMUL_SCALE_B);
  mark(product.whole, MATMUL_WHOLE);
  args.scale_rows = product.scale_rows;
  args.scale_columns = product.scale_columns;
  args.scale_terms = product.blocks == MATMUL_BLOCKS_SCALED ? 1 : 0;
  args.types = type_bits(product, kBias, MATMUL_TYPE_BIAS) |
               type_bits(product, kAddend, MATMUL_TYPE_ADDEND) |
               type_bits(product, kGate, MATMUL_TYPE_GATE) |
               type_bits(product, kResidual, MATMUL_TYPE_RESIDUAL) |
               type_bits(product, kResult, MATMUL_TYPE_RESULT) |
               type_bits(product, kBeside, MATMUL_TYPE_BESIDE);
  args.a = view_arguments(product, kA);
  args.b = view_arguments(product, kB);
  args.bias = view_arguments(product, kBias);
  args.addend = view_arguments(product, kAddend);
  args.gate = view_arguments(product, kGate);
  args.residual = view_arguments(product, kResidual);
  args.result = view_arguments(product, kResult);
  args.beside = view_arguments(product, kBeside);
  args.scale_a = view_arguments(product, kScaleA);
  args.scale_b = view_arguments(product, kScaleB);
  return args;
}

Lines lines_of(const Product& product, Role role) {
  constexpr std::int64_t kBytes = 16;
  const View& view = product.views[role];
  const std::int64_t across = role == kA ? product.m : product.n;
  const std::int64_t term_step = role == kA ? view.column : view.row;
  const std::int64_t across_step = role == kA ? view.row : view.column;
  const bool by_terms = term_step == 1 || product.k == 1;
  const std::int64_t step = by_terms ? across_step : term_step;
  const std::int64_t count = by_terms ? across : product.k;
  const std::int64_t multiple = kBytes / static_cast<std::int64_t>(size_of(view.dtype));
  const bool aligned = view.offset % multiple == 0 && (count == 1 || step % multiple == 0) &&
                       std::ranges::all_of(product.axes, [&](const OuterAxis& axis) {
                         return axis.steps[role] % multiple == 0;
                       });
  return {.exist = by_terms || across_step == 1 || across == 1,
          .by_terms = by_terms,
          .aligned = aligned,
          .length = by_terms ? product.k : across};
}

Refusal rejects_products(const Problem& problem, const DeviceProfile& profile) {
  if (problem.as<MatmulProblem>().quantised)
    return "writes floats, or sums as they are; codes makes codes of them";
  if (Refusal no = rejects_long_operands(problem, profile, {})) return no;
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  for (const Product& product : products_of(problem)) {
    std::size_t batches = 0, sums = 0;
    for (const OuterAxis& axis : product.axes) ++(axis.summed ? sums : batches);
    if (batches > 3 || sums > 2)
      return "takes at most three leading axes that do not lie one behind the other, and two that "
             "gradients are added up along";
    if (product.k >= kMost || (product.k > 0 && product.sums() > kMost / product.k))
      return "counts terms to 2^31";
    if (product.batches() >= kMost || scratch_of_stages(problem) >= std::uint64_t{1} << 31)
      return "counts elements to 2^31";
  }
  return std::nullopt;
}

std::vector<Define> type_constants(const Problem& problem, const Stage& stage) {
  const auto product = product_of(problem, stage);
  if (!product) return {{"A_TYPE", DTYPE_F32}, {"B_TYPE", DTYPE_F32}, {"BLOCKS", 0}};
  return {{"A_TYPE", dtype_axis(product->views[kA].dtype)},
          {"B_TYPE", dtype_axis(product->views[kB].dtype)},
          {"BLOCKS", product->blocks}};
}

}  // namespace tessera::operations::matmul
