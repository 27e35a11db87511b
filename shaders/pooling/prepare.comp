// SPDX-License-Identifier: Apache-2.0
// What     Chunks of packed sequences: scratch[s] = chunks of the sequences before s, at most
//          `rows`; one more for all.
//          Masks: scratch[b] = tokens of batch entry b that count.
// Who      Chunks: one work-group, an item owns consecutive sequences. Masks: a work-group owns
//          batch entries, an item every WG_X-th token of them.
// Memory   cu_seqlens twice, or the mask once.
// Numerics Integers. Sums of chunks stop at `rows`: overlapping sequences can't make them wrap.
// Assumes  sequences, rows and tokens are below 2^30.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/pooling_core/args.h"
#include "operations/pooling_core/pool.def"

layout(std430, binding = 0) readonly buffer Mask { uint mask_words[]; };
layout(std430, binding = 1) readonly buffer Boundaries { int cu_seqlens[]; };
layout(std430, binding = 2) writeonly buffer Scratch { int scratch[]; };
PUSH_ARGS(MeanPoolingArgs);
#include "pooling/pools.glsl"

shared uint sums[WG_X];

uint chunks_of(uint sequence) {
  const Pool pool = pool_of_sequence(sequence);
  return (pool.end - pool.begin + args.chunk - 1u) / args.chunk;
}

void main() {
  const uint item = gl_LocalInvocationID.x;
  if (MASKED != 0) {
    for (uint batch = gl_WorkGroupID.x; batch < args.batch; batch += gl_NumWorkGroups.x) {
      uint sum = 0u;
      for (uint token = item; token < args.tokens; token += WG_X)
        sum += is_counted(batch, token) ? 1u : 0u;
      sums[item] = sum;
      barrier();
      if (item == 0u) {
        for (uint other = 1u; other < WG_X; ++other) sum += sums[other];
        scratch[batch] = int(sum);
      }
      barrier();
    }
  } else {
    const uint share = (args.sequences + WG_X - 1u) / WG_X;
    const uint first = min(item * share, args.sequences), end = min(first + share, args.sequences);
    uint sum = 0u;
    for (uint sequence = first; sequence < end; ++sequence)
      sum = min(sum + chunks_of(sequence), args.rows);
    sums[item] = sum;
    barrier();
    uint before = 0u;
    for (uint other = 0u; other < item; ++other) before = min(before + sums[other], args.rows);
    for (uint sequence = first; sequence < end; ++sequence) {
      scratch[sequence] = int(before);
      before = min(before + chunks_of(sequence), args.rows);
    }
    if (item == WG_X - 1u) scratch[args.sequences] = int(before);
  }
}
