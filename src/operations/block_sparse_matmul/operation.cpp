// SPDX-License-Identifier: Apache-2.0
// The records of block_sparse_matmul and its gradient, and the typed functions.
#include <string>
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/sparse_core/problem.hpp"
#include "tessera/error.hpp"
#include "tessera/operations/block_sparse_matmul.hpp"

namespace tessera {
namespace operations::matmul {
namespace {

Operand sparse_operand(std::string name, Role role, bool optional, std::string shape,
                       std::string doc) {
  return {.name = std::move(name),
          .role = role,
          .optional = optional,
          .shape = std::move(shape),
          .dtypes = {DType::kF32, DType::kF16, DType::kBF16},
          .doc = std::move(doc)};
}

// The operands that both records begin with.
std::vector<Operand> sparse_operands() {
  return {sparse_operand("dense", Role::kInput, false, "[m, k]", "[k, n] beside one on the left"),
          sparse_operand("values", Role::kInput, false, "[blocks, rows, columns]",
                         "or [values]: blocks of one element"),
          {.name = "indices",
           .role = Role::kInput,
           .shape = "[blocks, 2]",
           .dtypes = {DType::kI32},
           .doc = "row and column of each, counted in blocks"},
          {.name = "block_mask",
           .role = Role::kInput,
           .optional = true,
           .shape = "[rows, columns]",
           .dtypes = {DType::kU8},
           .doc = "of blocks; where it is 0 they count nothing"}};
}

Operation sparse_forward() {
  Operation operation = sparse_record("block_sparse_matmul", sparse_slots());
  operation.summary = "product with a matrix of which some blocks, or values, are stored";
  operation.formula =
      "output = dense S, or S dense with side left, where S is the sum of the blocks in their "
      "places";
  operation.operands = sparse_operands();
  operation.operands.push_back(sparse_operand("output", Role::kOutput, false, "[m, n]", ""));
  return operation;
}

Operation sparse_backward() {
  Operation operation = sparse_record("block_sparse_matmul_backward", sparse_backward_slots());
  operation.summary = "gradients of block_sparse_matmul";
  operation.formula =
      "grad_dense = grad_output S^T; grad_values = dense^T grad_output in the places of the "
      "blocks, 0 of those that count nothing";
  operation.operands = sparse_operands();
  for (Operand& operand : std::vector<Operand>{
           sparse_operand("grad_output", Role::kInput, false, "[m, n]", ""),
           sparse_operand("grad_dense", Role::kOutput, true, "[m, k]",
                          "in the shape and dtype of dense"),
           sparse_operand("grad_values", Role::kOutput, true, "[blocks, rows, columns]",
                          "in the shape and dtype of values")})
    operation.operands.push_back(std::move(operand));
  return operation;
}

}  // namespace

std::vector<Operation> block_sparse_matmul() {
  return list_of(sparse_forward(), sparse_backward());
}

}  // namespace operations::matmul

namespace {

Tensors sparse_tensors(const Tensor& dense, const BlockSparse& sparse) {
  Tensors tensors{{"dense", dense}, {"values", sparse.values}, {"indices", sparse.indices}};
  if (sparse.block_mask) tensors.emplace("block_mask", sparse.block_mask);
  return tensors;
}

std::string side_of(const BlockSparse& sparse) { return sparse.on_left ? "left" : "right"; }

}  // namespace

Tensor block_sparse_matmul(const Executor& on, const Tensor& dense, const BlockSparse& sparse,
                           const std::optional<DType>& output_dtype) try {
  Options values{{"side", side_of(sparse)}};
  if (sparse.size) values.emplace("size", *sparse.size);
  if (output_dtype) values.emplace("output_dtype", std::string(to_string(*output_dtype)));
  return on.run("block_sparse_matmul", sparse_tensors(dense, sparse), std::move(values))
      .at("output");
} catch (...) {
  rethrow_as_error();
}

BlockSparseGradients block_sparse_matmul_backward(const Executor& on, const Tensor& dense,
                                                  const BlockSparse& sparse,
                                                  const Tensor& grad_output,
                                                  const BlockSparseGradientOptions& wanted) try {
  Tensors tensors = sparse_tensors(dense, sparse);
  tensors.emplace("grad_output", grad_output);
  std::vector<std::string> outputs;
  if (wanted.dense) outputs.emplace_back("grad_dense");
  if (wanted.values) outputs.emplace_back("grad_values");
  Tensors results = on.run("block_sparse_matmul_backward", std::move(tensors),
                           {{"side", side_of(sparse)}}, outputs);
  BlockSparseGradients gradients;
  if (wanted.dense) gradients.dense = std::move(results.at("grad_dense"));
  if (wanted.values) gradients.values = std::move(results.at("grad_values"));
  return gradients;
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
