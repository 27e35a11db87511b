/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_BLOCK_SPARSE_MATMUL_BACKWARD_H
#define TESSERA_C_BLOCK_SPARSE_MATMUL_BACKWARD_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradients of block_sparse_matmul. grad_dense = grad_output S^T; grad_values = dense^T
   grad_output in the places of the blocks, 0 of those that count nothing */
typedef struct tessera_block_sparse_matmul_backward_call {
  /* [m, k]: [k, n] beside one on the left */
  const tessera_tensor* dense;
  /* [blocks, rows, columns]: or [values]: blocks of one element */
  const tessera_tensor* values;
  /* [blocks, 2]: row and column of each, counted in blocks */
  const tessera_tensor* indices;
  /* optional, [rows, columns]: of blocks; where it is 0 they count nothing */
  const tessera_tensor* block_mask;
  /* [m, n] */
  const tessera_tensor* grad_output;
  /* optional, output, [m, k]: in the shape and dtype of dense */
  tessera_tensor** grad_dense;
  /* optional, output, [blocks, rows, columns]: in the shape and dtype of values */
  tessera_tensor** grad_values;
  /* one of right, left, default right: of the sparse matrix in the product */
  tessera_value side;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_block_sparse_matmul_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_block_sparse_matmul_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_block_sparse_matmul_backward_call* call) {
  const tessera_operand operands[] = {
      {"dense", call->dense, 0},
      {"values", call->values, 0},
      {"indices", call->indices, 0},
      {"block_mask", call->block_mask, 0},
      {"grad_output", call->grad_output, 0},
  };
  const tessera_output outputs[] = {
      {"grad_dense", call->grad_dense, 0},
      {"grad_values", call->grad_values, 0},
  };
  const tessera_option options[] = {
      {"side", call->side},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "block_sparse_matmul_backward",
      operands, 5,
      options, 2,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
