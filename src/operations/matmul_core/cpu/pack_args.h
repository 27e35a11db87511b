// SPDX-License-Identifier: Apache-2.0
// Arguments of matmul/cpu/pack: read by C++ and OpenCL C.
#ifndef TESSERA_OPERATIONS_MATMUL_CORE_CPU_PACK_ARGS_H
#define TESSERA_OPERATIONS_MATMUL_CORE_CPU_PACK_ARGS_H
#include "abi/shared.h"

#define PACK_ROWS 64u  // of an item

TESSERA_ABI_BEGIN

// Matrices along five axes around them, the innermost last; packed one behind the other.
struct MatmulPackArgs {
  u32 rows;
  u32 columns;
  u32 width;    // columns of a panel
  u32 to;       // where panels begin in scratch, in floats
  u32 by_rows;  // words of several terms: not 0 where terms are rows
  u32 offset;
  u32 row;
  u32 column;
  u32 size1;
  u32 size2;
  u32 size3;
  u32 size4;
  u32 step0;
  u32 step1;
  u32 step2;
  u32 step3;
  u32 step4;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_MATMUL_CORE_CPU_PACK_ARGS_H
