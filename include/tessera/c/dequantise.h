/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_DEQUANTISE_H
#define TESSERA_C_DEQUANTISE_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the floats that codes stand for. output = (codes - zero_point) scale, or codes / scale of
   dynamic ones */
typedef struct tessera_dequantise_call {
  /* [..., rows, columns] */
  const tessera_tensor* codes;
  /* optional, [..., rows / group_rows, columns / group_size]: of plain layouts, which need it */
  const tessera_tensor* scale;
  /* optional, [..., rows / group_rows, columns / group_size]: in the dtype of codes; 0 where it
     is left out */
  const tessera_tensor* zero_point;
  /* output, [..., rows, columns]: in the dtype that the option says */
  tessera_tensor** output;
  /* int, default none: columns that share a scale */
  tessera_value group_size;
  /* int, default none: rows that share a scale */
  tessera_value group_rows;
  /* bool, default false: of i8: scale is what floats are multiplied by, 127 / (largest + 1e-6) */
  tessera_value dynamic;
  /* one of plain, q8_0, q4_0, default plain: of codes; the others are GGUF's blocks of 32
     weights */
  tessera_value layout;
  /* one of f32, f16, bf16, default f32: of output */
  tessera_value dtype;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_dequantise_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_dequantise(const tessera_context* context,
    const tessera_stream* stream, const tessera_dequantise_call* call) {
  const tessera_operand operands[] = {
      {"codes", call->codes, 0},
      {"scale", call->scale, 0},
      {"zero_point", call->zero_point, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"group_size", call->group_size},
      {"group_rows", call->group_rows},
      {"dynamic", call->dynamic},
      {"layout", call->layout},
      {"dtype", call->dtype},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "dequantise",
      operands, 3,
      options, 6,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
