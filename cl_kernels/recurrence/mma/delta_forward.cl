// SPDX-License-Identifier: Apache-2.0
// What     A delta rule by chunks of 64 tokens, from what delta_chunks has left: missing = value - d state^T key, changes =
//          solution beta missing, output = scale (d state^T query + weights changes), state = decay state + key changes^T.
// Who      A work-group owns WG_X / 16 columns of a sequence in a head (delta_scan.clh).
// Memory   Keys, queries and what delta_chunks has left once for each tile of columns, by asynchronous copies, STAGES - 1
//          chunks ahead; values and outputs once.
// Numerics Float sums of products of f16 or bf16. Of what stays in the state nothing is rounded to those: the state, what is
//          missing, changes and the solution are each the sum of two such numbers (missing and solution of bfloat16).
//          For outputs state and changes are rounded. Chunks that delta_chunks has marked, or where something here is not
//          finite or too large, are taken step by step in floats.
// Assumes  sm_80, RECUR_DELTA_VALID; rows at multiples of 16 bytes; operands below 2^31 elements.
#define RECUR_OUTPUTS 1
#define DELTA_STAGES STAGES
#define RECUR_DELTA_ITEMS WG_X
#define SCAN_SYNC(number) barrier(CLK_LOCAL_MEM_FENCE)
#include "recurrence/mma/delta_forth.clh"

KERNEL void recurrence_delta_mma(const global scalar* restrict query_elements,
                                 const global scalar* restrict key_elements,
                                 const global scalar* restrict value_elements,
                                 const global void* restrict beta_elements, const global void* restrict g_elements,
                                 const global float* restrict initial_elements, global scalar* restrict output_elements,
                                 global float* restrict final_elements, global float* restrict scratch,
                                 const struct RecurArgs arguments) {
  local uchar memory[RECUR_DELTA_LOCAL_BYTES(STAGES, 1u)] __attribute__((aligned(128)));
  const uint group = (uint)get_group_id(1) * (uint)get_num_groups(0) + (uint)get_group_id(0);
  scan_forth(query_elements, key_elements, value_elements, g_elements, initial_elements, output_elements, final_elements,
             scratch, memory, &arguments, group, (uint)get_local_id(0));
}
