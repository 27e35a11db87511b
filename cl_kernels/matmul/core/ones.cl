// SPDX-License-Identifier: Apache-2.0
// What     A vector of ones at the beginning of scratch: sums of rows and columns are products with it.
// Who      One item.
// Memory   16 bytes.
// Numerics None.
// Assumes  Nothing.
#include "lib/prelude.clh"

KERNEL void matmul_ones(global float* restrict scratch) { *(global float4*)scratch = (float4)(1.0f); }
