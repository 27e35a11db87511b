// SPDX-License-Identifier: Apache-2.0
#include "operations/common/validate.hpp"

#include <string>

#include "kernel/option_access.hpp"
#include "operations/causal_conv1d/call.hpp"

namespace tessera::operations::state_space {

void validate_conv(Problem& problem, bool backward) {
  problem.dtype = problem.spec(kConvInput).dtype;
  ConvCall call{.layout = read_layout(problem, kConvInput, kConvOffsets), .backward = backward};
  const Layout& layout = call.layout;
  const Shape& weight = problem.spec(kConvWeight).shape;
  require(problem, weight.size() == 2,
          operand_text(problem, kConvWeight) + " must be [dim, width]");
  call.width = weight[1];
  require(problem, call.width >= 2 && call.width <= 8,
          operand_text(problem, kConvWeight) + " must have a width of 2 to 8");
  call.silu = kernel::choice_option(problem, "activation", {"none", "silu"}) == 1;

  const Shape rows{layout.batch, layout.tokens, layout.dim};
  const Shape states{layout.sequences, call.width - 1, layout.dim};
  check_operand(problem, kConvWeight, {layout.dim, call.width}, problem.dtype, true);
  check_operand(problem, kConvBias, {layout.dim}, problem.dtype, true);
  check_operand(problem, kConvInitial, states, problem.dtype, false);
  if (backward) {
    check_operand(problem, kConvGradOutput, rows, problem.dtype, false);
    check_operand(problem, kConvGradFinal, states, problem.dtype, false);
    for (const auto& [gradient, operand] : kConvGradients)
      infer_gradient(problem, gradient, operand);
  } else {
    problem.infer_output(kConvOutput, problem.dtype, rows);
    problem.infer_output(kConvFinal, problem.dtype, states);
  }
  problem.key = layout_key(problem, layout) + ";width=" + std::to_string(call.width);
  problem.set_details(call);
}

}  // namespace tessera::operations::state_space
