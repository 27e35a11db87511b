// SPDX-License-Identifier: Apache-2.0
// The records of causal_conv1d, and its typed functions.
#include <string>
#include <utility>
#include <vector>

#include "base/system/out_of_memory.hpp"
#include "operations/causal_conv1d/call.hpp"
#include "operations/common/gradients.hpp"
#include "tessera/operations/causal_conv1d.hpp"

namespace tessera {
namespace operations::state_space {
namespace {

std::vector<Operand> operands_of(bool backward) {
  const std::vector<DType> floats{DType::kF32, DType::kF16, DType::kBF16};
  constexpr const char* kRows = "[batch, seq, dim]";
  constexpr const char* kStates = "[sequences, width - 1, dim]";
  constexpr const char* kWeights = "in the dtype of input or in f32";
  std::vector<Operand> list{
      {.name = "input", .shape = kRows, .dtypes = floats},
      {.name = "weight", .shape = "[dim, width]", .dtypes = floats, .doc = kWeights},
      {.name = "bias", .optional = true, .shape = "[dim]", .dtypes = floats, .doc = kWeights},
      {.name = "initial_state",
       .optional = true,
       .shape = kStates,
       .dtypes = floats,
       .doc = "the inputs before the first, oldest first; 0 where it is left out"},
      cu_seqlens_operand()};
  if (!backward) {
    list.push_back({.name = "output",
                    .role = Role::kOutput,
                    .shape = kRows,
                    .dtypes = floats,
                    .doc = "0 for tokens of no sequence"});
    list.push_back({.name = "final_state",
                    .role = Role::kOutput,
                    .optional = true,
                    .shape = kStates,
                    .dtypes = floats,
                    .doc = "the last inputs, oldest first"});
    return list;
  }
  list.push_back({.name = "grad_output", .shape = kRows, .dtypes = floats});
  list.push_back({.name = "grad_final_state",
                  .optional = true,
                  .shape = kStates,
                  .dtypes = floats,
                  .doc = "0 where it is left out"});
  for (const auto& [gradient, operand] : kConvGradients)
    list.push_back(gradient_operand(list[operand]));
  return list;
}

Operation new_record(bool backward) {
  Operation operation;
  operation.operands = operands_of(backward);
  operation.options = {{.name = "activation",
                        .fallback = std::string("none"),
                        .type = "one of none, silu",
                        .doc = "silu(z) = z / (1 + exp(-z))"}};
  operation.errors = boundary_errors();
  operation.validate = [backward](Problem& problem) { validate_conv(problem, backward); };
  operation.reference = reference_conv;
  operation.raises = raises_conv;
  std::vector<Way> ways{conv_cpu_way(backward)};
  if (!backward) ways.push_back(conv_vectors_way());
  ways.push_back(conv_columns_way(backward));
  add_ways(operation, std::move(ways));
  operation.workload = conv_workload(backward);
  return operation;
}

}  // namespace

std::vector<Operation> causal_conv1d() {
  Operation forward = new_record(false);
  forward.name = "causal_conv1d";
  forward.summary = "causal convolution of 2 to 8 taps along tokens, for each channel by itself";
  forward.formula =
      "output_t = activation(bias + sum_j weight[:, j] input_(t - width + 1 + j)); inputs before "
      "the first are initial_state";
  Operation backward = new_record(true);
  backward.name = "causal_conv1d_backward";
  backward.summary = "gradients of causal_conv1d";
  backward.formula =
      "slope_t = grad_output_t activation'(z_t); grad_input_t = sum_j weight[:, j] slope_(t + "
      "width "
      "- 1 - j), and grad_final_state where it is held there; grad_weight[:, j] = sum_t slope_t "
      "input_(t - width + 1 + j); grad_bias = sum_t slope_t";
  return list_of(std::move(forward), std::move(backward));
}

}  // namespace operations::state_space

namespace {

Tensors operands(const Tensor& input, const Tensor& weight, const CausalConv1dOptions& options) {
  Tensors tensors{{"input", input}, {"weight", weight}};
  operations::add_operand(tensors, "bias", options.bias);
  operations::add_operand(tensors, "initial_state", options.initial_state);
  operations::add_operand(tensors, "cu_seqlens", options.cu_seqlens);
  return tensors;
}

Options named(const CausalConv1dOptions& options) {
  return {{"activation", std::string(options.silu ? "silu" : "none")}};
}

}  // namespace

CausalConv1dResult causal_conv1d(const Executor& on, const Tensor& input, const Tensor& weight,
                                 const CausalConv1dOptions& options) try {
  return operations::run_with_state<CausalConv1dResult>(
      on, "causal_conv1d", operands(input, weight, options), named(options), options.final_state);
} catch (...) {
  rethrow_as_error();
}

CausalConv1dGradients causal_conv1d_backward(const Executor& on, const Tensor& input,
                                             const Tensor& weight, const Tensor& grad_output,
                                             const CausalConv1dOptions& options,
                                             const CausalConv1dGradientOptions& wanted) try {
  CausalConv1dGradients gradients;
  const operations::WantedGradient all[] = {
      {"input", wanted.input, &gradients.input},
      {"weight", wanted.weight, &gradients.weight},
      {"bias", wanted.bias, &gradients.bias},
      {"initial_state", wanted.initial_state, &gradients.initial_state}};
  operations::run_gradients(on, "causal_conv1d_backward", operands(input, weight, options),
                            grad_output, wanted.grad_final_state, named(options), all);
  return gradients;
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
