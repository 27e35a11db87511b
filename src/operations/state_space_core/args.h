// SPDX-License-Identifier: Apache-2.0
// What the kernels of causal_conv1d and selective_scan have in common: read by C++, OpenCL C and
// GLSL.
#ifndef TESSERA_OPERATIONS_STATE_SPACE_CORE_ARGS_H
#define TESSERA_OPERATIONS_STATE_SPACE_CORE_ARGS_H
#include "abi/shared.h"

// Of cu_seqlens; in the order of Operation::errors.
#define SPACE_ERROR_OUTSIDE 0u
#define SPACE_ERROR_DECREASES 1u

TESSERA_ABI_BEGIN

// Where an operand of three axes lies. Offsets and strides count elements. States have a sequence
// in place of the batch entry, and what their second axis is in place of the token.
struct SpaceRows {
  u32 offset;
  u32 batch;
  u32 token;
  u32 feature;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_STATE_SPACE_CORE_ARGS_H
