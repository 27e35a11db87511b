// SPDX-License-Identifier: Apache-2.0
// What     All steps of recurrent cells in one launch: weights stay in local memory, h goes through global memory.
// Who      Work-groups are teams, which have some batch entries of one direction each, of parts, which own UNITS units. A
//          warp has a share of the terms of all sums; then each sums up and finishes some of them.
// Memory   Weights once; h of a team once for each part and step, in the order of fragments; products and outputs once.
// Numerics Float sums of products of h rounded to the storage type, shares of the terms in order; functions to 2^-22.
// Assumes  sm_80, CELL_MMA_VALID, DTYPE of 16 bits. No part waits for another before all have begun: if they don't in
//          time, all end, and the same kernel with ALONE takes the parts of a team one behind the other.
#include "cells/mma/step.clh"
#include "cells/mma/teams.clh"

KERNEL void cells_mma_forward(global float* scratch, global void* restrict output_elements,
                              global void* restrict h_elements, global void* restrict c_elements,
                              global float* kept_numbers, const struct CellTeamArgs args) {
  local uint4 space[CELL_LOCAL_BYTES / 16];
  cell_team(scratch, output_elements, h_elements, c_elements, kept_numbers, &args, LOCAL_ADDRESS(space));
}
