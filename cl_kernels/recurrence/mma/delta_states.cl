// SPDX-License-Identifier: Apache-2.0
// What     Of each chunk of 64 tokens of a delta rule the state before it and the changes of its tokens (delta_forth.clh), the
//          gradients of the state behind it and of what the changes are of, and the gradients of values (delta_back.clh).
// Who      256 items own 16 columns of a sequence in a head, forth or back (delta_scan.clh): work-groups of 512 have both, side
//          by side, for what waits for memory and for itself leaves room for another; those of 256 go back, then forth.
// Memory   Keys, queries and what delta_chunks has left once for each tile of columns, by asynchronous copies, forth
//          FORTH_STAGES - 1 chunks ahead and back STAGES - 1; values, gradients of outputs and of values once; states, changes and their
//          gradients to scratch as floats.
// Numerics Float sums of products of f16 or bf16. Back, weights are rounded to those; all else is the sum of two such numbers
//          (what the solution is multiplied with, and itself, of bfloat16). Chunks that delta_chunks has marked, or where
//          something here is not finite or too large, are taken step by step in floats.
// Assumes  sm_80, RECUR_DELTA_VALID; rows at multiples of 16 bytes; operands below 2^31 elements.
#define RECUR_OUTPUTS 0
#define DELTA_STAGES RECUR_DELTA_FORTH_STAGES
#define RECUR_DELTA_ITEMS RECUR_DELTA_STATES_ITEMS
#define SCAN_SYNC(number)                                  \
  if (RECUR_DELTA_BESIDE) {                                \
    GROUP_SYNC(1 + (number), 256);                         \
  } else {                                                 \
    barrier(CLK_LOCAL_MEM_FENCE);                          \
  }
#include "recurrence/mma/delta_back.clh"
#include "recurrence/mma/delta_forth.clh"

KERNEL void recurrence_delta_states(
    const global scalar* restrict query_elements, const global scalar* restrict key_elements,
    const global scalar* restrict value_elements, const global void* restrict g_elements,
    const global float* restrict initial_elements, const global scalar* restrict doutput_elements,
    const global float* restrict dfinal_elements, global scalar* restrict dvalue_elements,
    global float* restrict dinitial_elements, global float* restrict scratch, const struct RecurArgs arguments) {
  local uchar memory[RECUR_DELTA_STATES_BYTES] __attribute__((aligned(128)));
  const uint group = (uint)get_group_id(1) * (uint)get_num_groups(0) + (uint)get_group_id(0), units = arguments.tiles;
  const uint local_id = (uint)get_local_id(0), item = local_id % RECUR_DELTA_ITEMS;
  const bool back = RECUR_DELTA_BESIDE ? uniform((int)(local_id / RECUR_DELTA_ITEMS)) == 0 : group < units;
  const uint unit = RECUR_DELTA_BESIDE || back ? group : group - units;
  if (back) {
    scan_back(query_elements, key_elements, g_elements, doutput_elements, dfinal_elements, dvalue_elements,
              dinitial_elements, scratch, memory, &arguments, unit, item);
  } else {
    scan_forth(query_elements, key_elements, value_elements, g_elements, initial_elements, 0, 0, scratch,
               memory + (RECUR_DELTA_BESIDE ? RECUR_DELTA_BACK_BYTES : 0), &arguments, unit, item);
  }
}
