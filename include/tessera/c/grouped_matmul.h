/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_GROUPED_MATMUL_H
#define TESSERA_C_GROUPED_MATMUL_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rows in groups, each multiplied by the matrix of its group. output[i] = lhs[i] rhs[g -
   group_offset] for the rows i of group g; existing_out[i] or 0 where rhs has no such matrix,
   and behind the last group */
typedef struct tessera_grouped_matmul_call {
  /* [m, k]: rows, sorted by group */
  const tessera_tensor* lhs;
  /* [groups, k, n]: [groups, n, k] with transpose_rhs */
  const tessera_tensor* rhs;
  /* [num_groups]: rows of each group, one group behind the other */
  const tessera_tensor* group_sizes;
  /* optional, [m, n]: what rows of no group keep, in the dtype of output */
  const tessera_tensor* existing_out;
  /* optional, [m, k]: of lhs in 8 bits: one, of each row, or for each 128 rows or terms */
  const tessera_tensor* scale_lhs;
  /* optional, [groups, k, n]: of rhs in 8 bits: one, of each matrix or column, or for each 128
     columns or terms */
  const tessera_tensor* scale_rhs;
  /* output, [m, n] */
  tessera_tensor** output;
  /* int, default 0: the first group that has a matrix here */
  tessera_value group_offset;
  /* bool, default false: rhs is [groups, n, k] */
  tessera_value transpose_rhs;
  /* one of f32, f16, bf16, i32, default none: of output; where it is not set that of
     existing_out, or of lhs, of 8-bit floats and scaled i8 f32, of i8 alone i32 */
  tessera_value output_dtype;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_grouped_matmul_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_grouped_matmul(const tessera_context* context,
    const tessera_stream* stream, const tessera_grouped_matmul_call* call) {
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
      {"transpose_rhs", call->transpose_rhs},
      {"output_dtype", call->output_dtype},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "grouped_matmul",
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
