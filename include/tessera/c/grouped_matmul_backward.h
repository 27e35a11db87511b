/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_GROUPED_MATMUL_BACKWARD_H
#define TESSERA_C_GROUPED_MATMUL_BACKWARD_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradients of grouped_matmul. grad_lhs[i] = grad_output[i] rhs[g - group_offset]^T; grad_rhs[g
   - group_offset] = lhs_g^T grad_output_g, 0 of empty groups; grad_existing_out = grad_output in
   rows of no group, else 0 */
typedef struct tessera_grouped_matmul_backward_call {
  /* [m, k] */
  const tessera_tensor* lhs;
  /* [groups, k, n]: [groups, n, k] with transpose_rhs */
  const tessera_tensor* rhs;
  /* [num_groups]: rows of each group, one group behind the other */
  const tessera_tensor* group_sizes;
  /* [m, n]: of any dtype */
  const tessera_tensor* grad_output;
  /* optional, output, [m, k]: in the dtype of lhs */
  tessera_tensor** grad_lhs;
  /* optional, output, [groups, k, n]: in the shape and dtype of rhs */
  tessera_tensor** grad_rhs;
  /* optional, output, [m, n]: in the dtype of grad_output */
  tessera_tensor** grad_existing_out;
  /* int, default 0: the first group that has a matrix here */
  tessera_value group_offset;
  /* bool, default false: rhs is [groups, n, k] */
  tessera_value transpose_rhs;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_grouped_matmul_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_grouped_matmul_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_grouped_matmul_backward_call* call) {
  const tessera_operand operands[] = {
      {"lhs", call->lhs, 0},
      {"rhs", call->rhs, 0},
      {"group_sizes", call->group_sizes, 0},
      {"grad_output", call->grad_output, 0},
  };
  const tessera_output outputs[] = {
      {"grad_lhs", call->grad_lhs, 0},
      {"grad_rhs", call->grad_rhs, 0},
      {"grad_existing_out", call->grad_existing_out, 0},
  };
  const tessera_option options[] = {
      {"group_offset", call->group_offset},
      {"transpose_rhs", call->transpose_rhs},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "grouped_matmul_backward",
      operands, 4,
      options, 3,
      outputs, 3,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
