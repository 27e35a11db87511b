// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of the kernels that merge attention states: C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_MERGE_ATTENTION_STATES_ARGS_H
#define TESSERA_OPERATIONS_MERGE_ATTENTION_STATES_ARGS_H
#include "abi/shared.h"
TESSERA_ABI_BEGIN

// Where rows lie: row (n, head) of part p is at offset + p * part + n / seq * batch + n % seq *
// token
// + head * head. In elements.
struct StateRows {
  u32 offset;
  u32 part;
  u32 batch;
  u32 token;
  u32 head;
};

// Backward the gradients stand where their tensors do; grad_output and grad_merged in `result` and
// `merged`.
struct MergeStatesArgs {
  u32 rows;
  u32 heads;
  u32 seq;
  u32 dim;
  u32 parts;      // of `outputs`
  u32 has_other;  // not 0: one part more
  u32 has_merged;
  STRUCT(StateRows) outputs;
  STRUCT(StateRows) sums;
  STRUCT(StateRows) other;
  STRUCT(StateRows) other_sum;
  STRUCT(StateRows) result;
  STRUCT(StateRows) merged;
};

struct MergeStatesBackwardArgs {
  STRUCT(MergeStatesArgs) merge;
  STRUCT(StateRows) grad_outputs;
  STRUCT(StateRows) grad_sums;
  STRUCT(StateRows) grad_other;
  STRUCT(StateRows) grad_other_sum;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_MERGE_ATTENTION_STATES_ARGS_H
