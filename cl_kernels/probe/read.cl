// SPDX-License-Identifier: Apache-2.0
// What     The sum of a part of a buffer: the read bandwidth that can be had.
// Who      An item owns one contiguous share.
// Memory   A launch reads 64 * blocks bytes, asked for READ_AHEAD blocks ahead, and writes 4 bytes per item.
// Numerics Whole numbers, wrapping: any content will do.
// Assumes  sink holds one word per item; a one-dimensional grid; WG_X = 1; from is aligned to 64.
#ifndef VECTOR_WIDTH
#define VECTOR_WIDTH 4
#endif
#include "lib/cpu/vectors.clh"
#include "operations/probe/args.h"

#define READ_AHEAD 64  // 4 KiB; none to 8 KiB are within 3 % on a Zen 4
#define STREAMS 4      // sums that do not wait for each other

KERNEL void read_cpu(const global uint16* restrict from, global uint* restrict sink, const struct ReadArgs a) {
  const size_t share = (a.blocks + get_global_size(0) - 1) / get_global_size(0);
  const size_t first = get_global_id(0) * share, end = min(first + share, (size_t)a.blocks);
  from += a.first;
  uint16 sum[STREAMS];
  UNROLL for (int n = 0; n < STREAMS; ++n) sum[n] = 0;
  size_t i = first;
  for (; i + STREAMS <= end; i += STREAMS) {
    UNROLL for (int n = 0; n < STREAMS; ++n) {
      PREFETCH_FAR(from + i + n + READ_AHEAD);
      sum[n] += from[i + n];
    }
  }
  for (; i < end; ++i) sum[0] += from[i];
  UNROLL for (int n = 1; n < STREAMS; ++n) sum[0] += sum[n];
  uint words[16], total = 0;
  vstore16(sum[0], 0, words);
  for (int n = 0; n < 16; ++n) total += words[n];
  sink[get_global_id(0)] = total;
}
