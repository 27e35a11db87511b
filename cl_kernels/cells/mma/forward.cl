// SPDX-License-Identifier: Apache-2.0
// What     All steps of recurrent cells in one launch: weights stay in local memory, h goes through global memory.
// Who      Work-groups are teams, which have some batch entries of one direction each, of parts, which own UNITS units. A
//          warp has a share of the terms of all sums; then each sums up and finishes some of them.
// Memory   Weights once; h of a team once for each part and step, in the order of fragments; products and outputs once.
// Numerics Float sums of products of h rounded to the storage type, shares of the terms in order; functions to 2^-22.
// Assumes  sm_80, CELL_MMA_VALID, DTYPE of 16 bits. No part waits for another before all have begun: if they don't in
//          time, all end, and the same kernel with ALONE takes the parts of a team one behind the other.
#include "lib/mma/tiles.clh"
#include "lib/mma/shared.clh"
#include "cells/mma/step.clh"

INLINE void steps_together(const CellPart* part, uint item) {
  const struct CellTeamArgs* args = part->args;
  global uint* flags = part->scratch_words + args->flags + part->team * args->parts;
  const uint warp = item / 32, lane = item % 32;
  cell_weights(part, item);
  for (uint block = 0; block < args->blocks; ++block) cell_begin(part, block, warp, lane);
  GROUP_BARRIER();
  if (item == 0) share_release(flags + part->number, 1);
  // Parts whose units are this warp's terms.
  const uint first = warp * (K_STEPS * 16 / UNITS);
  const bool waits = lane < K_STEPS * 16 / UNITS && first + lane < args->parts;
  const global uint* flag = flags + (waits ? first + lane : 0);
  for (uint step = 0; step < part->steps; ++step) {
    for (uint block = 0; block < args->blocks; ++block) {
      CellItem items[CELL_ITEMS];
      cell_load(items, part, step, block, warp, lane);
      if (block == 0) {
        while (warp_votes(waits && share_acquire(flag) <= step) != 0) {
        }
        WARP_SYNC();
      }
      cell_step(items, part, step, block, warp, lane);
    }
    if (item == 0) share_release(flags + part->number, step + 2);
  }
}

INLINE void steps_alone(CellPart* part, uint item) {
  const struct CellTeamArgs* args = part->args;
  const uint warp = item / 32, lane = item % 32;
  for (part->number = 0; part->number < args->parts; ++part->number)
    for (uint block = 0; block < args->blocks; ++block) cell_begin(part, block, warp, lane);
  for (uint step = 0; step < part->steps; ++step) {
    for (part->number = 0; part->number < args->parts; ++part->number) {
      cell_weights(part, item);
      GROUP_BARRIER();
      for (uint block = 0; block < args->blocks; ++block) {
        CellItem items[CELL_ITEMS];
        cell_load(items, part, step, block, warp, lane);
        cell_step(items, part, step, block, warp, lane);
      }
    }
  }
}

KERNEL void cells_mma_forward(global float* scratch, global void* restrict output_elements,
                              global void* restrict h_elements, global void* restrict c_elements,
                              global float* kept_numbers, const struct CellTeamArgs args) {
  local uint4 space[CELL_MMA_LOCAL_BYTES / 16];
  const uint item = (uint)get_local_id(0), group = (uint)get_group_id(0);
  const uint local_memory = LOCAL_ADDRESS(space);
  volatile global uint* census = (volatile global uint*)scratch + args.census;
  if (item == 0) {
    uint verdict = census[CELL_VERDICT];
    if (!ALONE)
      verdict = share_census(census, census + CELL_VERDICT, (uint)get_num_groups(0), args.patience * 1000ul, CELL_TOGETHER,
                             CELL_ALONE);
    store_local(local_memory + CELL_MMA_LOCAL_BYTES - 16, verdict);
  }
  GROUP_BARRIER();
  if (load_local(local_memory + CELL_MMA_LOCAL_BYTES - 16) != (ALONE ? CELL_ALONE : CELL_TOGETHER)) return;
  CellPart part;
  part.args = &args;
  part.scratch = scratch;
  part.scratch_words = (global uint*)scratch;
  part.kept_numbers = kept_numbers;
  part.output = (global scalar*)output_elements;
  part.h_n = (global scalar*)h_elements;
  part.c_n = (global scalar*)c_elements;
  part.weights = local_memory;
  part.sums = local_memory + CELL_MMA_WEIGHT_BYTES;
  part.team = ALONE ? group : group / args.parts;
  part.number = ALONE ? 0 : group % args.parts;
  part.direction = part.team / args.teams;
  part.first_row = part.team % args.teams * args.blocks * BLOCK_ROWS;
  part.steps = max(args.step.tokens, 1u);
  if (ALONE) {
    steps_alone(&part, item);
  } else {
    steps_together(&part, item);
  }
}
