// SPDX-License-Identifier: Apache-2.0
// What     x = x * slope + offset, over and over: the rate of float multiply-adds that can be had.
// Who      An item owns independent chains in registers: 8 of float4; fma_peak_cpu 12 of floatN.
// Memory   4 bytes written per item. FLOPs of a launch: items * iterations * 1024 for fma_peak,
//          items * iterations * 192 * VECTOR_WIDTH for fma_peak_cpu.
// Numerics slope is a little above -1: x swings around offset / 2, bounded and never subnormal.
// Assumes  sink holds one float per item; a one-dimensional grid; fma_peak_cpu: WG_X = 1.
#include "lib/prelude.clh"
#include "operations/probe/args.h"

#define CHAINS 8
#define ROUNDS 16
KERNEL void fma_peak(global float* restrict sink, const struct FmaPeakArgs a) {
  const uint item = get_global_id(0);
  // From the id, so that no compiler knows them.
  const float slope = -1.0f + 1e-6f * (float)(item % 7 + 1), offset = 0.1f * (float)(item % 5 + 1);
  float4 x[CHAINS];
  UNROLL for (uint c = 0; c < CHAINS; ++c)
    x[c] = (float4)(0.1f, 0.2f, 0.3f, 0.4f) * (float)(c + item % 3 + 1);
  for (uint i = 0; i < a.iterations; ++i) {
    UNROLL for (uint round = 0; round < ROUNDS; ++round) {
      UNROLL for (uint c = 0; c < CHAINS; ++c) x[c] = fma(x[c], (float4)(slope), (float4)(offset));
    }
  }
  float4 total = x[0];
  UNROLL for (uint c = 1; c < CHAINS; ++c) total += x[c];
  sink[item] = (total.s0 + total.s1) + (total.s2 + total.s3);
}

// 12 chains cover two ports of latency 4 to 6 and, with slope and offset, fit AVX2's 16 registers.
#ifndef VECTOR_WIDTH
#define VECTOR_WIDTH 4
#endif
#define VECTOR_OF_(type, width) type##width
#define VECTOR_OF(type, width) VECTOR_OF_(type, width)
#define CPU_CHAINS 12
#define CPU_ROUNDS 8
KERNEL void fma_peak_cpu(global float* restrict sink, const struct FmaPeakArgs a) {
  typedef VECTOR_OF(float, VECTOR_WIDTH) vector;
  const uint item = get_global_id(0);
  const vector slope = (vector)(-1.0f + 1e-6f * (float)(item % 7 + 1)),
               offset = (vector)(0.1f * (float)(item % 5 + 1));
  vector x[CPU_CHAINS];
  UNROLL for (uint c = 0; c < CPU_CHAINS; ++c) x[c] = (vector)(0.1f * (float)(c + item % 3 + 1));
  for (uint i = 0; i < a.iterations; ++i) {
    UNROLL for (uint round = 0; round < CPU_ROUNDS; ++round) {
      UNROLL for (uint c = 0; c < CPU_CHAINS; ++c) x[c] = fma(x[c], slope, offset);
    }
  }
  vector total = x[0];
  UNROLL for (uint c = 1; c < CPU_CHAINS; ++c) total += x[c];
  float lanes[VECTOR_WIDTH], sum = 0.0f;
  VECTOR_OF(vstore, VECTOR_WIDTH)(total, 0, lanes);
  for (uint lane = 0; lane < VECTOR_WIDTH; ++lane) sum += lanes[lane];
  sink[item] = sum;
}
