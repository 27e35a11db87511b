// SPDX-License-Identifier: Apache-2.0
#include "operations/common/validate.hpp"

#include <string>

#include "kernel/option_access.hpp"
#include "operations/selective_scan/call.hpp"

namespace tessera::operations::state_space {
namespace {

void read_sizes(const Problem& problem, ScanCall& call) {
  const Shape& a = problem.spec(kScanA).shape;
  require(problem, a.size() == 2, operand_text(problem, kScanA) + " must be [dim, state]");
  call.states = a[1];
  require(problem, call.states >= 1, operand_text(problem, kScanA) + " must have states");
  const Shape& b = problem.spec(kScanB).shape;
  require(problem, b.size() == 4,
          operand_text(problem, kScanB) + " must be [batch, seq, groups, state]");
  call.groups = b[2];
  require(problem, call.groups >= 1 && call.layout.dim % call.groups == 0,
          operand_text(problem, kScanB) +
              " must have a number of groups that divides dim, which is " +
              std::to_string(call.layout.dim));
}

void check_operands(const Problem& problem, const ScanCall& call) {
  const Layout& layout = call.layout;
  const DType dtype = problem.dtype;
  const Shape rows{layout.batch, layout.tokens, layout.dim};
  const Shape factors{layout.batch, layout.tokens, call.groups, call.states};
  check_operand(problem, kScanDelta, rows, dtype, false);
  check_operand(problem, kScanA, {layout.dim, call.states}, dtype, true);
  check_operand(problem, kScanB, factors, dtype, false);
  check_operand(problem, kScanC, factors, dtype, false);
  check_operand(problem, kScanD, {layout.dim}, dtype, true);
  check_operand(problem, kScanZ, rows, dtype, false);
  check_operand(problem, kScanBias, {layout.dim}, dtype, true);
  check_operand(problem, kScanInitial, {layout.sequences, layout.dim, call.states}, DType::kF32,
                false);
}

}  // namespace

void validate_scan(Problem& problem, bool backward) {
  problem.dtype = problem.spec(kScanU).dtype;
  ScanCall call{.layout = read_layout(problem, kScanU, kScanOffsets), .backward = backward};
  read_sizes(problem, call);
  check_operands(problem, call);
  call.softplus = kernel::bool_option(problem, "delta_softplus");
  const Layout& layout = call.layout;
  const Shape rows{layout.batch, layout.tokens, layout.dim};
  const Shape states{layout.sequences, layout.dim, call.states};
  if (backward) {
    check_operand(problem, kScanGradOutput, rows, problem.dtype, false);
    check_operand(problem, kScanGradFinal, states, DType::kF32, false);
    for (const auto& [gradient, operand] : kScanGradients)
      infer_gradient(problem, gradient, operand);
  } else {
    problem.infer_output(kScanOutput, problem.dtype, rows);
    problem.infer_output(kScanFinal, DType::kF32, states);
  }
  problem.key = layout_key(problem, layout) + ";state=" + bucket(call.states) +
                ";groups=" + bucket(call.groups);
  problem.set_details(call);
}

}  // namespace tessera::operations::state_space
