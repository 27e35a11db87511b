// SPDX-License-Identifier: Apache-2.0
// The records of the norms.
#include <utility>

#include "operations/norms/problem.hpp"

namespace tessera::operations::norms {
namespace {

const std::vector<DType> kStorage{DType::kF32, DType::kF16, DType::kBF16};

Operand operand(std::string name, Role role, bool optional, std::string shape, std::string doc) {
  return {.name = std::move(name),
          .role = role,
          .optional = optional,
          .shape = std::move(shape),
          .dtypes = kStorage,
          .doc = std::move(doc)};
}

// What forward and backward take alike.
std::vector<Operand> inputs() {
  return {
      operand("input", Role::kInput, false, "[..., dim]",
              "any strides but along the last axis, which is contiguous"),
      operand("weight", Role::kInput, true, "[dim]", "the dtype of input, or f32; 1 without it"),
      operand("bias", Role::kInput, true, "[dim]", "the dtype of input, or f32; 0 without it"),
      operand("residual", Role::kInput, true, "[..., dim]",
              "joins input before it is normalised; its leading axes broadcast to input's")};
}

Operation new_operation(bool centered, bool backward) {
  Operation operation;
  operation.name =
      std::string(centered ? "layer_norm" : "rms_norm") + (backward ? "_backward" : "");
  operation.operands = inputs();
  operation.options = {{.name = "epsilon",
                        .fallback = 1e-6,
                        .type = "float",
                        .doc = "joins the mean of squares; finite, not negative"}};
  add_ways(operation, norm_ways(backward));
  operation.workload = norm_workload(backward);
  return operation;
}

Operation forward(bool centered) {
  Operation operation = new_operation(centered, false);
  operation.summary = centered ? "LayerNorm over the last axis, of the sum with a residual"
                               : "RMSNorm over the last axis, of the sum with a residual";
  operation.formula =
      centered
          ? "s = input + residual; output = (s - mean(s)) / sqrt(var(s) + epsilon) * weight + bias"
          : "s = input + residual; output = s / sqrt(mean(s^2) + epsilon) * weight + bias";
  operation.operands.push_back(operand("output", Role::kOutput, false, "[..., dim]",
                                       "in the shape and dtype of input, or quantised"));
  operation.operands.back().dtypes.insert(operation.operands.back().dtypes.end(),
                                          {DType::kI8, DType::kE4M3FN, DType::kE5M2});
  operation.operands.push_back(operand("sum", Role::kOutput, true, "[..., dim]",
                                       "input + residual, which output is not rounded from"));
  operation.operands.push_back(
      {.name = "scale",
       .role = Role::kOutput,
       .optional = true,
       .shape = "[..., 1]",
       .dtypes = {DType::kF32},
       .doc = "of each row of a quantised output, which times this is meant"});
  operation.options.push_back({.name = "quantise",
                               .fallback = std::string("none"),
                               .type = "one of none, i8, e4m3fn, e5m2",
                               .doc = "output in that type, divided by the scale of its row"});
  operation.types = norm_types();
  operation.validate = [centered](Problem& problem) { validate_norm(problem, centered); };
  operation.reference = reference_norm;
  return operation;
}

Operation backward(bool centered) {
  Operation operation = new_operation(centered, true);
  operation.summary = std::string("gradients of ") + (centered ? "layer_norm" : "rms_norm");
  operation.formula =
      centered
          ? "g = grad_output weight; grad_input = (g - mean(g) - n mean(g n)) / sqrt(var(s) + "
            "epsilon) + grad_sum; grad_weight = sum of grad_output n; grad_bias = sum of "
            "grad_output"
          : "g = grad_output weight; grad_input = (g - n mean(g n)) / sqrt(mean(s^2) + epsilon) + "
            "grad_sum; grad_weight = sum of grad_output n; grad_bias = sum of grad_output";
  const auto add = [&](std::string name, Role role, bool optional, std::string shape,
                       std::string doc) {
    operation.operands.push_back(
        operand(std::move(name), role, optional, std::move(shape), std::move(doc)));
  };
  operation.operands[kBias].doc = "of the forward call; only its dtype counts";
  add("grad_output", Role::kInput, false, "[..., dim]", "in the shape and dtype of input");
  add("grad_sum", Role::kInput, true, "[..., dim]", "joins grad_input");
  add("grad_input", Role::kOutput, false, "[..., dim]", "");
  add("grad_weight", Role::kOutput, true, "[dim]", "in the dtype of weight");
  add("grad_bias", Role::kOutput, true, "[dim]", "in the dtype of bias");
  add("grad_residual", Role::kOutput, true, "[..., dim]",
      "in the shape of residual: grad_input, summed where residual broadcasts");
  operation.validate = [centered](Problem& problem) { validate_norm_backward(problem, centered); };
  operation.reference = reference_norm_backward;
  return operation;
}

}  // namespace

std::vector<Operation> norms() {
  return list_of(forward(false), forward(true), backward(false), backward(true));
}

}  // namespace tessera::operations::norms
