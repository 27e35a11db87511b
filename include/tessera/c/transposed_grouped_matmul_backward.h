/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_TRANSPOSED_GROUPED_MATMUL_BACKWARD_H
#define TESSERA_C_TRANSPOSED_GROUPED_MATMUL_BACKWARD_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradients of transposed_grouped_matmul. grad_lhs[:, i] = grad_output[g - group_offset] rhs[i];
   grad_rhs[i] = lhs[:, i]^T grad_output[g - group_offset]; 0 in rows of no group; that of
   existing_out is grad_output */
typedef struct tessera_transposed_grouped_matmul_backward_call {
  /* [k, m] */
  const tessera_tensor* lhs;
  /* [m, n] */
  const tessera_tensor* rhs;
  /* [num_groups]: rows of each group, one group behind the other */
  const tessera_tensor* group_sizes;
  /* [groups, k, n]: of any dtype */
  const tessera_tensor* grad_output;
  /* optional, output, [k, m]: in the dtype of lhs */
  tessera_tensor** grad_lhs;
  /* optional, output, [m, n]: in the dtype of rhs */
  tessera_tensor** grad_rhs;
  /* int, default 0: the first group that has a matrix here */
  tessera_value group_offset;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_transposed_grouped_matmul_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_transposed_grouped_matmul_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_transposed_grouped_matmul_backward_call* call) {
  const tessera_operand operands[] = {
      {"lhs", call->lhs, 0},
      {"rhs", call->rhs, 0},
      {"group_sizes", call->group_sizes, 0},
      {"grad_output", call->grad_output, 0},
  };
  const tessera_output outputs[] = {
      {"grad_lhs", call->grad_lhs, 0},
      {"grad_rhs", call->grad_rhs, 0},
  };
  const tessera_option options[] = {
      {"group_offset", call->group_offset},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "transposed_grouped_matmul_backward",
      operands, 4,
      options, 2,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
