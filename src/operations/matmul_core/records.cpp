// SPDX-License-Identifier: Apache-2.0
#include "operations/matmul_core/records.hpp"

#include <utility>

namespace tessera::operations::matmul {

Operand operand(std::string name, Role role, bool optional, std::string shape, std::string doc) {
  return {.name = std::move(name),
          .role = role,
          .optional = optional,
          .shape = std::move(shape),
          .dtypes = {DType::kF32, DType::kF16, DType::kBF16},
          .doc = std::move(doc)};
}

void add_eight_bits(Operation& operation) {
  const std::string first = operation.operands.front().name;
  for (std::size_t slot : {0, 1}) {
    auto& dtypes = operation.operands[slot].dtypes;
    dtypes.insert(dtypes.end(), {DType::kI8, DType::kE4M3FN, DType::kE5M2});
  }
  // By the first factor; validation has what the second may be.
  for (const DType dtype : operation.operands.front().dtypes)
    operation.types.emplace_back(std::string(to_string(dtype)),
                                 std::vector{std::pair{first, dtype}});
}

Operand scale_operand(const std::string& name, const std::string& of) {
  return {
      .name = name,
      .role = Role::kInput,
      .optional = true,
      .shape = "[..., rows, columns]",
      .dtypes = {DType::kF32},
      .doc = "of " + of + " in 8 bits: one, of each row that is no term, or of 128 x 128, 1 x 128"};
}

Operand output_operand(std::string shape, std::string doc) {
  Operand output = operand("output", Role::kOutput, false, std::move(shape), std::move(doc));
  output.dtypes.insert(output.dtypes.end(),
                       {DType::kI32, DType::kI8, DType::kE4M3FN, DType::kE5M2});
  return output;
}

OptionInfo quantise_option() {
  return {.name = "quantise",
          .fallback = std::string("none"),
          .type = "one of none, i8, e4m3fn, e5m2",
          .doc = "output in that type, divided by the scale of its row"};
}

Operand codes_scale_operand(std::string shape) {
  return {.name = "scale",
          .role = Role::kOutput,
          .optional = true,
          .shape = std::move(shape),
          .dtypes = {DType::kF32},
          .doc = "of each row of a quantised output, which times this is meant"};
}

OptionInfo output_option(const std::string& operand) {
  return {.name = "output_dtype",
          .type = "one of f32, f16, bf16, i32",
          .doc = "of output; where it is not set that of " + operand +
                 ", of 8-bit floats and scaled i8 f32, of i8 alone i32"};
}

OptionInfo activation_option(const std::string& fallback) {
  std::string choices = "one of ";
  for (const std::string& choice : activation_names())
    choices += (choice == activation_names().front() ? "" : ", ") + choice;
  return {.name = "activation",
          .fallback = fallback,
          .type = std::move(choices),
          .doc = "swiglu and geglu take columns in pairs: act(even) odd"};
}

Operation new_record(const std::string& name, const MatmulSlots& slots) {
  Operation operation;
  operation.name = name;
  operation.options = {activation_option("none")};
  operation.validate = [slots](Problem& problem) { validate_matmul(problem, slots); };
  operation.reference = reference_matmul;
  add_ways(operation, matmul_ways(slots));
  operation.workload = matmul_workload(slots);
  return operation;
}

}  // namespace tessera::operations::matmul
