// SPDX-License-Identifier: Apache-2.0
// What     Of each chunk of 64 tokens of a delta rule the state before it and the changes of its tokens (delta_forth.clh), the
//          gradients of the state behind it and of what the changes are of, and the gradients of values (delta_back.clh).
// Who      Half of the work-groups go forth, the others back; each owns WG_X / 16 columns of a sequence in a head
//          (delta_scan.clh). Each waits for memory and for itself, so that two on a compute unit take little longer than one.
// Memory   Keys, queries and what delta_chunks has left once for each tile of columns, by asynchronous copies, forth a
//          chunk ahead and back STAGES - 1; values, gradients of outputs and of values once; states, changes and their
//          gradients to scratch as floats.
// Numerics Float sums of products of f16 or bf16. Back, weights are rounded to those; all else is the sum of two such numbers
//          (what the solution is multiplied with, and itself, of bfloat16). Chunks that delta_chunks has marked, or where
//          something here is not finite or too large, are taken step by step in floats.
// Assumes  sm_80, RECUR_DELTA_VALID; rows at multiples of 16 bytes; operands below 2^31 elements.
#define RECUR_OUTPUTS 0
#define DELTA_STAGES 2
#include "recurrence/mma/delta_back.clh"
#include "recurrence/mma/delta_forth.clh"

KERNEL void recurrence_delta_states(
    const global scalar* restrict query_elements, const global scalar* restrict key_elements,
    const global scalar* restrict value_elements, const global void* restrict g_elements,
    const global float* restrict initial_elements, const global scalar* restrict doutput_elements,
    const global float* restrict dfinal_elements, global scalar* restrict dvalue_elements,
    global float* restrict dinitial_elements, global float* restrict scratch, const struct RecurArgs arguments) {
  local uchar memory[RECUR_DELTA_BOTH_BYTES] __attribute__((aligned(128)));
  const uint group = (uint)get_group_id(1) * (uint)get_num_groups(0) + (uint)get_group_id(0), half_groups = arguments.tiles;
  const uint item = (uint)get_local_id(0);
  if (group < half_groups) {
    scan_back(query_elements, key_elements, g_elements, doutput_elements, dfinal_elements, dvalue_elements,
              dinitial_elements, scratch, memory, &arguments, group, item);
  } else {
    scan_forth(query_elements, key_elements, value_elements, g_elements, initial_elements, 0, 0, scratch, memory,
               &arguments, group - half_groups, item);
  }
}
