// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of common/boundaries: read by C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_COMMON_BOUNDARIES_ARGS_H
#define TESSERA_OPERATIONS_COMMON_BOUNDARIES_ARGS_H
#include "abi/shared.h"

TESSERA_ABI_BEGIN

struct BoundariesArgs {
  u32 boundaries;  // one more than there are sequences
  u32 tokens;
  u32 offset;
  u32 stride;
  u32 counted;  // not 0: an operand says how many sequences there are
  u32 count_offset;
  u32 result;     // where they begin in scratch, in entries of 4 bytes
  u32 outside;    // errors of the record: below 0 or beyond the tokens
  u32 decreases;  // less than the boundary before
  u32 errors;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_COMMON_BOUNDARIES_ARGS_H
