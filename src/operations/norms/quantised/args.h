// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of norms whose output is quantised: read by C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_NORMS_QUANTISED_ARGS_H
#define TESSERA_OPERATIONS_NORMS_QUANTISED_ARGS_H
#include "abi/storage.h"
#include "operations/norms/args.h"
TESSERA_ABI_BEGIN

struct NormQuantisedArgs {
  STRUCT(NormForwardArgs) norm;
  STRUCT(NormRows) scale;  // of each row
  u32 type;                // of the output: DTYPE_I8, DTYPE_E4M3FN or DTYPE_E5M2
  f32 largest;             // number of that type
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_NORMS_QUANTISED_ARGS_H
