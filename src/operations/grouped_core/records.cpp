// SPDX-License-Identifier: Apache-2.0
// What the records of grouped products have in common.
#include <utility>

#include "operations/grouped_core/problem.hpp"

namespace tessera::operations::matmul {

Operand grouped_operand(std::string name, Role role, bool optional, std::string shape,
                        std::string doc) {
  return {.name = std::move(name),
          .role = role,
          .optional = optional,
          .shape = std::move(shape),
          .dtypes = {DType::kF32, DType::kF16, DType::kBF16},
          .doc = std::move(doc)};
}

void add_eight_bits_of_groups(Operation& operation) {
  for (Operand& operand : operation.operands) {
    auto& dtypes = operand.dtypes;
    if (operand.name == "lhs" || operand.name == "rhs")
      dtypes.insert(dtypes.end(), {DType::kI8, DType::kE4M3FN, DType::kE5M2});
    if (operand.name == "existing_out" || operand.name == "output") dtypes.push_back(DType::kI32);
  }
  // By lhs; validation has what rhs may be.
  for (const DType dtype : operation.operands.front().dtypes)
    operation.types.emplace_back(std::string(to_string(dtype)),
                                 std::vector{std::pair{std::string("lhs"), dtype}});
}

Operand grouped_scale_operand(const std::string& of, std::string shape, std::string doc) {
  return {.name = "scale_" + of,
          .role = Role::kInput,
          .optional = true,
          .shape = std::move(shape),
          .dtypes = {DType::kF32},
          .doc = "of " + of + " in 8 bits: one, " + std::move(doc)};
}

Operand sizes_operand() {
  return {.name = "group_sizes",
          .role = Role::kInput,
          .shape = "[num_groups]",
          .dtypes = {DType::kI32},
          .doc = "rows of each group, one group behind the other"};
}

std::vector<ErrorKind> sizes_errors() {
  return {{.kind = "negative_group_size",
           .operand = "group_sizes",
           .sentence = "is negative and counts 0"},
          {.kind = "group_beyond_rows",
           .operand = "group_sizes",
           .sentence = "goes beyond the last row, where the group is cut"}};
}

Operation grouped_record(const std::string& name, const GroupedSlots& slots) {
  Operation operation;
  operation.name = name;
  operation.options = {{.name = "group_offset",
                        .fallback = std::int64_t{0},
                        .type = "int",
                        .doc = "the first group that has a matrix here"}};
  if (!slots.transposed)
    operation.options.push_back({.name = "transpose_rhs",
                                 .fallback = false,
                                 .type = "bool",
                                 .doc = "rhs is [groups, n, k]"});
  if (!slots.backward())
    operation.options.push_back(
        {.name = "output_dtype",
         .type = "one of f32, f16, bf16, i32",
         .doc = "of output; where it is not set that of existing_out, or of lhs, of 8-bit floats "
                "and scaled i8 f32, of i8 alone i32"});
  operation.errors = sizes_errors();
  operation.validate = [slots](Problem& problem) { validate_grouped(problem, slots); };
  operation.reference = reference_grouped;
  operation.raises = grouped_raises;
  add_ways(operation, list_of(grouped_cpu_way(slots), grouped_hopper_way(slots),
                              grouped_cooperative_way(slots), grouped_tile_way(slots)));
  operation.workload = grouped_workload(slots);
  return operation;
}

}  // namespace tessera::operations::matmul
