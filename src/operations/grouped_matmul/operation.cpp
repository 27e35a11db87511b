// SPDX-License-Identifier: Apache-2.0
// The records of grouped_matmul, transposed_grouped_matmul and their gradients.
#include <string>
#include <utility>

#include "operations/grouped_core/problem.hpp"

namespace tessera::operations::matmul {
namespace {

Operation forward() {
  Operation operation = grouped_record("grouped_matmul", grouped_slots());
  operation.summary = "rows in groups, each multiplied by the matrix of its group";
  operation.formula =
      "output[i] = lhs[i] rhs[g - group_offset] for the rows i of group g; existing_out[i] or 0 "
      "where rhs has no such matrix, and behind the last group";
  operation.operands = {
      grouped_operand("lhs", Role::kInput, false, "[m, k]", "rows, sorted by group"),
      grouped_operand("rhs", Role::kInput, false, "[groups, k, n]",
                      "[groups, n, k] with transpose_rhs"),
      sizes_operand(),
      grouped_operand("existing_out", Role::kInput, true, "[m, n]",
                      "what rows of no group keep, in the dtype of output"),
      grouped_scale_operand("lhs", "[m, k]", "of each row, or for each 128 rows or terms"),
      grouped_scale_operand("rhs", "[groups, k, n]",
                            "of each matrix or column, or for each 128 columns or terms"),
      grouped_operand("output", Role::kOutput, false, "[m, n]", "")};
  add_eight_bits_of_groups(operation);
  return operation;
}

Operation backward() {
  Operation operation = grouped_record("grouped_matmul_backward", grouped_backward_slots());
  operation.summary = "gradients of grouped_matmul";
  operation.formula =
      "grad_lhs[i] = grad_output[i] rhs[g - group_offset]^T; grad_rhs[g - group_offset] = lhs_g^T "
      "grad_output_g, 0 of empty groups; grad_existing_out = grad_output in rows of no group, else "
      "0";
  operation.operands = {
      grouped_operand("lhs", Role::kInput, false, "[m, k]", ""),
      grouped_operand("rhs", Role::kInput, false, "[groups, k, n]",
                      "[groups, n, k] with transpose_rhs"),
      sizes_operand(),
      grouped_operand("grad_output", Role::kInput, false, "[m, n]", "of any dtype"),
      grouped_operand("grad_lhs", Role::kOutput, true, "[m, k]", "in the dtype of lhs"),
      grouped_operand("grad_rhs", Role::kOutput, true, "[groups, k, n]",
                      "in the shape and dtype of rhs"),
      grouped_operand("grad_existing_out", Role::kOutput, true, "[m, n]",
                      "in the dtype of grad_output")};
  return operation;
}

Operation transposed_forward() {
  Operation operation = grouped_record("transposed_grouped_matmul", transposed_grouped_slots());
  operation.summary = "columns of lhs and rows of rhs in groups, a product for each group";
  operation.formula =
      "output[g - group_offset] = sum over the rows i of group g of lhs[:, i] rhs[i, :], plus "
      "existing_out";
  operation.operands = {
      grouped_operand("lhs", Role::kInput, false, "[k, m]", "columns, sorted by group"),
      grouped_operand("rhs", Role::kInput, false, "[m, n]", "rows, sorted by group"),
      sizes_operand(),
      grouped_operand("existing_out", Role::kInput, true, "[groups, k, n]",
                      "added, in the dtype of output"),
      grouped_scale_operand("lhs", "[k, m]", "of each row, or for each 128 rows"),
      grouped_scale_operand("rhs", "[m, n]", "of each column, or for each 128 columns"),
      grouped_operand("output", Role::kOutput, false, "[groups, k, n]", "")};
  add_eight_bits_of_groups(operation);
  operation.options.push_back(
      {.name = "groups",
       .type = "int",
       .doc = "matrices of output; all from group_offset on where it is not set"});
  return operation;
}

Operation transposed_backward() {
  Operation operation =
      grouped_record("transposed_grouped_matmul_backward", transposed_grouped_backward_slots());
  operation.summary = "gradients of transposed_grouped_matmul";
  operation.formula =
      "grad_lhs[:, i] = grad_output[g - group_offset] rhs[i]; grad_rhs[i] = lhs[:, i]^T "
      "grad_output[g - group_offset]; 0 in rows of no group; that of existing_out is grad_output";
  operation.operands = {
      grouped_operand("lhs", Role::kInput, false, "[k, m]", ""),
      grouped_operand("rhs", Role::kInput, false, "[m, n]", ""),
      sizes_operand(),
      grouped_operand("grad_output", Role::kInput, false, "[groups, k, n]", "of any dtype"),
      grouped_operand("grad_lhs", Role::kOutput, true, "[k, m]", "in the dtype of lhs"),
      grouped_operand("grad_rhs", Role::kOutput, true, "[m, n]", "in the dtype of rhs")};
  return operation;
}

}  // namespace

std::vector<Operation> grouped_matmul() {
  return list_of(forward(), backward(), transposed_forward(), transposed_backward());
}

}  // namespace tessera::operations::matmul
