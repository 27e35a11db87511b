// SPDX-License-Identifier: Apache-2.0
// What     to = from, in blocks of 64 bytes: the memory bandwidth that can be had.
// Who      copy: neighbouring items own neighbouring uint4 and stride over the grid. copy_cpu: an
//          item owns one contiguous share.
// Memory   A launch reads 64 * blocks bytes and writes as many (a CPU may read the target as well).
// Numerics None.
// Assumes  Buffers of 64 * blocks bytes that do not overlap, aligned to 64; copy_cpu: WG_X = 1.
#include "lib/prelude.clh"
#include "operations/probe/args.h"

KERNEL void copy(const global uint4* restrict from, global uint4* restrict to,
                 const struct CopyArgs a) {
  const size_t vectors = (size_t)a.blocks * 4, grid = get_global_size(0);
  for (size_t i = get_global_id(0); i < vectors; i += grid) to[i] = from[i];
}

KERNEL void copy_cpu(const global uint16* restrict from, global uint16* restrict to,
                     const struct CopyArgs a) {
  const size_t share = (a.blocks + get_global_size(0) - 1) / get_global_size(0);
  const size_t first = get_global_id(0) * share, end = min(first + share, (size_t)a.blocks);
  for (size_t i = first; i < end; ++i) to[i] = from[i];
}
