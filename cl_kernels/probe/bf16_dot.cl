// SPDX-License-Identifier: Apache-2.0
// What     x += a . b in pairs of bfloat16, over and over: the rate of AVX512_BF16 that can be had.
// Who      An item owns 12 independent sums of 16 floats in registers.
// Memory   4 bytes written per item. FLOPs of a launch: items * iterations * 6144.
// Numerics a is (1, -1) and b (1, 1), so that sums stay as they are.
// Assumes  sink holds one float per item; a one-dimensional grid; WG_X = 1; a CPU with AVX512_BF16.
#include "lib/prelude.clh"
#include "operations/probe/args.h"

#define CHAINS 12
#define ROUNDS 8
KERNEL void bf16_dot(global float* restrict sink, const struct FmaPeakArgs args) {
  const uint item = get_global_id(0);
  const uint16 a = 0xbf803f80u, b = 0x3f803f80u;
  float16 x[CHAINS];
  UNROLL for (uint c = 0; c < CHAINS; ++c) x[c] = (float)(item + c);
  for (uint i = 0; i < args.iterations; ++i) {
    UNROLL for (uint round = 0; round < ROUNDS; ++round) {
      // volatile: no turn is left out.
      UNROLL for (uint c = 0; c < CHAINS; ++c)
        __asm__ volatile("vdpbf16ps %2, %1, %0" : "+v"(x[c]) : "v"(a), "v"(b));
    }
  }
  float16 total = x[0];
  UNROLL for (uint c = 1; c < CHAINS; ++c) total += x[c];
  sink[item] = total.s0 + total.sf;
}
