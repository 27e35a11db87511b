// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of the kernels that move rows to experts and back: C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_MOE_ROWS_ARGS_H
#define TESSERA_OPERATIONS_MOE_ROWS_ARGS_H
#include "abi/shared.h"

#define MOE_NOWHERE (-1)
#define MOE_HELD 8u  // choices of a token that an item has at a time
// Kinds of errors, as the records have them.
#define MOE_BAD_EXPERT 0u
#define MOE_BAD_SLOT 1u

TESSERA_ABI_BEGIN

struct MoeRowsArgs {
  u32 tokens;
  u32 top_k;
  u32 experts;
  u32 rows;  // of experts
  u32 dim;
  u32 weighted;  // not 0: there are weights
  u32 ids_offset;
  u32 slots_offset;
  u32 starts_offset;
  u32 weights_offset;
  u32 token_offset;  // the operand of tokens
  u32 token_stride;
  u32 row_offset;  // the operand of rows that is read, or written by dispatch
  u32 row_stride;
  u32 to_offset;  // of grad_rows
  u32 to_stride;
  u32 grad_weights_offset;
  u32 errors;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_MOE_ROWS_ARGS_H
