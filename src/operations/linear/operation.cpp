// SPDX-License-Identifier: Apache-2.0
// The records of linear and its gradients.
#include <string>
#include <utility>

#include "operations/linear/fused_mlp.hpp"
#include "operations/matmul_core/records.hpp"

namespace tessera::operations::matmul {
namespace {

Operation new_operation(const std::string& name, const MatmulSlots& slots) {
  Operation operation = new_record(name, slots);
  operation.operands = {
      operand("input", Role::kInput, false, "[..., in_features]", ""),
      operand("weight", Role::kInput, false, "[out_features, in_features]", ""),
      operand("bias", Role::kInput, true, "[out_features]",
              "or whatever broadcasts to the product"),
      operand("gate", Role::kInput, true, "[..., out_features]",
              "multiplies what the activation gives; half as many columns where they are paired")};
  return operation;
}

Operation forward() {
  Operation operation = new_operation("linear", linear_slots());
  operation.summary = "a layer of weights with bias, activation, gate and residual";
  operation.formula = "output = act(input weight^T + bias) * gate + residual";
  add_eight_bits(operation);
  operation.operands.push_back(operand("residual", Role::kInput, true, "[..., out_features]",
                                       "added last, in the shape of output"));
  operation.operands.push_back(scale_operand("scale_input", "input"));
  operation.operands.push_back(scale_operand("scale_weight", "weight"));
  operation.operands.push_back(
      output_operand("[..., out_features]", "half as many columns where they are paired"));
  operation.operands.push_back(codes_scale_operand("[..., 1]"));
  operation.options.push_back(output_option("input"));
  operation.options.push_back(quantise_option());
  return operation;
}

Operation backward() {
  Operation operation = new_operation("linear_backward", linear_backward_slots());
  operation.summary = "gradients of linear";
  operation.formula =
      "t = grad_output * gate * act'(z); grad_input = t weight; grad_weight = t^T input; grad_bias "
      "= sum of t; grad_gate = grad_output * act(z) (of pairs act(even) odd)";
  const auto add = [&](std::string name, Role role, bool optional, std::string shape,
                       std::string doc) {
    operation.operands.push_back(
        operand(std::move(name), role, optional, std::move(shape), std::move(doc)));
  };
  add("grad_output", Role::kInput, false, "[..., out_features]",
      "in the shape of output, of any dtype");
  add("grad_input", Role::kOutput, true, "[..., in_features]", "in the dtype of input");
  add("grad_weight", Role::kOutput, true, "[out_features, in_features]", "in the dtype of weight");
  add("grad_bias", Role::kOutput, true, "[out_features]", "in the shape and dtype of bias");
  add("grad_gate", Role::kOutput, true, "[..., out_features]", "in the dtype of gate");
  return operation;
}

}  // namespace

std::vector<Operation> linear() { return list_of(forward(), backward(), fused_mlp_record()); }

}  // namespace tessera::operations::matmul
