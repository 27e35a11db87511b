// SPDX-License-Identifier: Apache-2.0
// Arguments of attention/core/distribution, which checks what a call says of its sequences.
#ifndef TESSERA_OPERATIONS_ATTENTION_DISTRIBUTION_ARGS_H
#define TESSERA_OPERATIONS_ATTENTION_DISTRIBUTION_ARGS_H
#include "abi/shared.h"

// What is raised, in the order of the record.
#define DISTRIBUTION_OUT_OF_ORDER 0u
#define DISTRIBUTION_NOT_ONE_ROW 1u
#define DISTRIBUTION_ERRORS 2u

TESSERA_ABI_BEGIN

struct AttentionDistributionArgs {
  u32 sequences;
  u32 offset;  // of the three ends
  u32 stride;
  u32 starts_offset;
  u32 starts_stride;
  u32 errors;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_ATTENTION_DISTRIBUTION_ARGS_H
