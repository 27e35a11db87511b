/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_BLOCK_SPARSE_MATMUL_H
#define TESSERA_C_BLOCK_SPARSE_MATMUL_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* product with a matrix of which some blocks, or values, are stored. output = dense S, or S
   dense with side left, where S is the sum of the blocks in their places */
typedef struct tessera_block_sparse_matmul_call {
  /* [m, k]: [k, n] beside one on the left */
  const tessera_tensor* dense;
  /* [blocks, rows, columns]: or [values]: blocks of one element */
  const tessera_tensor* values;
  /* [blocks, 2]: row and column of each, counted in blocks */
  const tessera_tensor* indices;
  /* optional, [rows, columns]: of blocks; where it is 0 they count nothing */
  const tessera_tensor* block_mask;
  /* output, [m, n] */
  tessera_tensor** output;
  /* one of right, left, default right: of the sparse matrix in the product */
  tessera_value side;
  /* int, default none: columns of the sparse matrix, rows of one on the left; as block_mask says */
  tessera_value size;
  /* one of f32, f16, bf16, default none: of output; that of dense where it is not set */
  tessera_value output_dtype;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_block_sparse_matmul_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_block_sparse_matmul(const tessera_context* context,
    const tessera_stream* stream, const tessera_block_sparse_matmul_call* call) {
  const tessera_operand operands[] = {
      {"dense", call->dense, 0},
      {"values", call->values, 0},
      {"indices", call->indices, 0},
      {"block_mask", call->block_mask, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"side", call->side},
      {"size", call->size},
      {"output_dtype", call->output_dtype},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "block_sparse_matmul",
      operands, 4,
      options, 4,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
