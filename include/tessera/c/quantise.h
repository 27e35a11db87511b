/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_QUANTISE_H
#define TESSERA_C_QUANTISE_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* floats as codes of 8 or 4 bits, with a scale for each block. scale = largest magnitude /
   largest code; codes = round(input / scale); of u8 and u4 scale = (max - min) / largest code,
   zero_point = round(-min / scale), codes = round(input / scale) + zero_point */
typedef struct tessera_quantise_call {
  /* [..., rows, columns] */
  const tessera_tensor* input;
  /* output, [..., rows, columns]: in the dtype that the option says; u8 [..., rows, bytes] in
     layouts of blocks */
  tessera_tensor** codes;
  /* output, [..., rows / group_rows, columns / group_size] */
  tessera_tensor** scale;
  /* optional, output, [..., rows / group_rows, columns / group_size]: of u8 and u4 */
  tessera_tensor** zero_point;
  /* int, default none: columns that share a scale */
  tessera_value group_size;
  /* int, default none: rows that share a scale */
  tessera_value group_rows;
  /* bool, default false: of i8: scale is what floats are multiplied by, 127 / (largest + 1e-6) */
  tessera_value dynamic;
  /* one of plain, q8_0, q4_0, default plain: of codes; the others are GGUF's blocks of 32
     weights */
  tessera_value layout;
  /* one of i8, u8, i4, u4, e4m3fn, e5m2, default i8: of codes */
  tessera_value dtype;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_quantise_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_quantise(const tessera_context* context,
    const tessera_stream* stream, const tessera_quantise_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
  };
  const tessera_output outputs[] = {
      {"codes", call->codes, 0},
      {"scale", call->scale, 0},
      {"zero_point", call->zero_point, 0},
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
      "quantise",
      operands, 1,
      options, 6,
      outputs, 3,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
