/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_TRANSPOSED_GROUPED_MATMUL_H
#define TESSERA_C_TRANSPOSED_GROUPED_MATMUL_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* columns of lhs and rows of rhs in groups, a product for each group. output[g - group_offset] =
   sum over the rows i of group g of lhs[:, i] rhs[i, :], plus existing_out */
typedef struct tessera_transposed_grouped_matmul_call {
  /* [k, m]: columns, sorted by group */
  const tessera_tensor* lhs;
  /* [m, n]: rows, sorted by group */
  const tessera_tensor* rhs;
  /* [num_groups]: rows of each group, one group behind the other */
  const tessera_tensor* group_sizes;
  /* optional, [groups, k, n]: added, in the dtype of output */
  const tessera_tensor* existing_out;
  /* optional, [k, m]: of lhs in 8 bits: one, of each row, or for each 128 rows */
  const tessera_tensor* scale_lhs;
  /* optional, [m, n]: of rhs in 8 bits: one, of each column, or for each 128 columns */
  const tessera_tensor* scale_rhs;
  /* output, [groups, k, n] */
  tessera_tensor** output;
  /* int, default 0: the first group that has a matrix here */
  tessera_value group_offset;
  /* one of f32, f16, bf16, i32, default none: of output; where it is not set that of
     existing_out, or of lhs, of 8-bit floats and scaled i8 f32, of i8 alone i32 */
  tessera_value output_dtype;
  /* int, default none: matrices of output; all from group_offset on where it is not set */
  tessera_value groups;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_transposed_grouped_matmul_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_transposed_grouped_matmul(const tessera_context* context,
    const tessera_stream* stream, const tessera_transposed_grouped_matmul_call* call) {
  const tessera_operand operands[] = {
      {"lhs", call->lhs, 0},
      {"rhs", call->rhs, 0},
      {"group_sizes", call->group_sizes, 0},
      {"existing_out", call->existing_out, 0},
      {"scale_lhs", call->scale_lhs, 0},
      {"scale_rhs", call->scale_rhs, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"group_offset", call->group_offset},
      {"output_dtype", call->output_dtype},
      {"groups", call->groups},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "transposed_grouped_matmul",
      operands, 6,
      options, 4,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
