/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_QUANTISED_MATMUL_BACKWARD_H
#define TESSERA_C_QUANTISED_MATMUL_BACKWARD_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradient of the input of quantised_matmul. grad_input[..., k] = sum over n of grad_output[...,
   n] scale[n, g] (weight[n, k] - zero_point[n, g]) */
typedef struct tessera_quantised_matmul_backward_call {
  /* [..., n] */
  const tessera_tensor* grad_output;
  /* [n, k]: u8 [n, bytes] in layouts of blocks */
  const tessera_tensor* weight;
  /* optional, [n, groups]: of plain layouts, which need it */
  const tessera_tensor* scale;
  /* optional, [n, groups]: in the dtype of weight; 0 where it is left out */
  const tessera_tensor* zero_point;
  /* optional, [num_groups]: rows of input of each group, one group behind the other; weight is
     [matrices, n, k] then, scale and zero_point [matrices, n, groups] */
  const tessera_tensor* group_sizes;
  /* output, [..., k]: in the dtype of grad_output */
  tessera_tensor** grad_input;
  /* one of plain, q8_0, q4_0, default plain: of weight; the others are GGUF's blocks of 32
     weights */
  tessera_value layout;
  /* int, default none: terms that share a scale; k / groups where it is not set */
  tessera_value group_size;
  /* int, default none: the first group that has a matrix; of group_sizes */
  tessera_value group_offset;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_quantised_matmul_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_quantised_matmul_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_quantised_matmul_backward_call* call) {
  const tessera_operand operands[] = {
      {"grad_output", call->grad_output, 0},
      {"weight", call->weight, 0},
      {"scale", call->scale, 0},
      {"zero_point", call->zero_point, 0},
      {"group_sizes", call->group_sizes, 0},
  };
  const tessera_output outputs[] = {
      {"grad_input", call->grad_input, 0},
  };
  const tessera_option options[] = {
      {"layout", call->layout},
      {"group_size", call->group_size},
      {"group_offset", call->group_offset},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "quantised_matmul_backward",
      operands, 5,
      options, 4,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
