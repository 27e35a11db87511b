// SPDX-License-Identifier: Apache-2.0
// What     All steps back of recurrent cells in one launch: weights stay in local memory and registers, gradients of gates go
//          through global memory. Behind the last the gradients of h0 and c0.
// Who      As forward, with parts of BACK_UNITS units of h and blocks of BACK_ROWS batch entries.
// Memory   Weights once; gradients of a team's gates once for each part and step, in the order of fragments; what forward kept
//          and the gradients of gates once; h before each step for gradients of weight_hh, if they are wanted.
// Numerics Float sums of products of gradients rounded to the storage type, by 2 to the power that keeps the largest of 16
//          units in its range; shares of the terms in order; functions to 2^-22. Gradients that leave are not rounded,
//          h is.
// Assumes  As forward, and CELL_BACK_VALID.
#include "cells/mma/back_step.clh"
#include "cells/mma/teams.clh"

KERNEL void cells_mma_backward(global float* scratch, global void* restrict output_elements,
                               global void* restrict h_elements, global void* restrict c_elements,
                               global float* kept_numbers, const struct CellTeamArgs args) {
  local uint4 space[CELL_LOCAL_BYTES / 16];
  cell_team(scratch, output_elements, h_elements, c_elements, kept_numbers, &args, LOCAL_ADDRESS(space));
}
