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

OptionInfo output_option(const std::string& operand) {
  return {.name = "output_dtype",
          .type = "one of f32, f16, bf16",
          .doc = "of output; that of " + operand + " where it is not set"};
}

Operation new_record(const std::string& name, const MatmulSlots& slots) {
  Operation operation;
  operation.name = name;
  std::string choices = "one of ";
  for (const std::string& choice : activation_names())
    choices += (choice == activation_names().front() ? "" : ", ") + choice;
  operation.options = {{.name = "activation",
                        .fallback = std::string("none"),
                        .type = std::move(choices),
                        .doc = "swiglu and geglu take columns in pairs: act(even) odd"}};
  operation.validate = [slots](Problem& problem) { validate_matmul(problem, slots); };
  operation.reference = reference_matmul;
  add_ways(operation, matmul_ways(slots));
  operation.workload = matmul_workload(slots);
  return operation;
}

}  // namespace tessera::operations::matmul
