// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of what moe_ffn does between the operations that it calls: C++, OpenCL C and
// GLSL.
#ifndef TESSERA_OPERATIONS_MOE_FFN_ARGS_H
#define TESSERA_OPERATIONS_MOE_FFN_ARGS_H
#include "abi/shared.h"
TESSERA_ABI_BEGIN

// Everything but `starts` is in scratch: sizes in words, matrices without gaps in elements.
struct MoeFfnArgs {
  u32 experts;
  u32 starts;  // offset of the rows at which experts begin
  u32 sizes;
  u32 rows;
  u32 inner;
  u32 type;     // of matrices: DTYPE_…
  u32 gate_up;  // [rows, 2 inner], or [rows, inner] without a gate; backward its gradient takes its
                // place
  u32 gated;    // [rows, inner]
  u32 gradient;    // of gated
  u32 is_vector;   // not 0: fours of elements are vectors
  u32 activation;  // MATMUL_NONE ... of matmul_core
  u32 is_gated;    // 0: rows have no gate before up, which is activated itself
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_MOE_FFN_ARGS_H
