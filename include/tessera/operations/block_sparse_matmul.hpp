// SPDX-License-Identifier: Apache-2.0
// Products with a matrix S of which some blocks, or single values, are stored, and their gradients.
//
//   output = dense S         dense [m, k], S [k, n], output [m, n]
//   output = S dense         S on the left: S [m, k], dense [k, n], output [m, n]
//
// S is 0 but for the blocks of `values`, [blocks, rows, columns], each in the place that its row
// and column of blocks in `indices`, i32 [blocks, 2], say; blocks of one place are added. `values`
// of one axis are single values (coordinates in place of blocks). The blocks divide both extents of
// S: one is dense's, the other is `size`, or that of block_mask. block_mask, u8 [rows, columns] of
// blocks, leaves out the blocks of places where it is 0.
//
//   grad_dense  = grad_output S^T, or S^T grad_output
//   grad_values = what a block's place is of dense^T grad_output, or of grad_output dense^T; 0 of
//                 blocks that are left out
//
// Blocks that are left out are not read. The cost is that of the blocks; the device sorts them, and
// the host reads nothing.
//
// Numerics: dense, values and grad_output are f32, f16 or bf16 of their own; output is in
// output_dtype, or the dtype of dense, gradients in that of their operand. Products and sums in
// float, blocks in the order in which they are stored, one rounding to nearest even at the end: the
// same bits every time. No variant uses matrix units.
//
// Errors: InvalidArgument for shapes, dtypes and options that contradict this. A block outside of S
// counts nothing and is a DataError when the call is waited for. Unsupported where an operand
// reaches element 2^31. Strides are any that are not negative.
#pragma once

#include <cstdint>
#include <optional>

#include "tessera/context.hpp"
#include "tessera/export.hpp"

namespace tessera {

struct BlockSparse {
  Tensor values, indices;
  std::optional<std::int64_t> size{};  // columns, or rows of one on the left
  Tensor block_mask{};
  bool on_left = false;
};

struct BlockSparseGradientOptions {
  bool dense = true, values = true;
};

// Empty where it was not wanted.
struct BlockSparseGradients {
  Tensor dense, values;
};

TESSERA_API Tensor block_sparse_matmul(const Executor& on, const Tensor& dense,
                                       const BlockSparse& sparse,
                                       const std::optional<DType>& output_dtype = {});
TESSERA_API BlockSparseGradients block_sparse_matmul_backward(
    const Executor& on, const Tensor& dense, const BlockSparse& sparse, const Tensor& grad_output,
    const BlockSparseGradientOptions& wanted = {});

}  // namespace tessera
