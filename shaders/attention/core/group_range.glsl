// SPDX-License-Identifier: Apache-2.0
// Which query rows a group of a backward kernel has to do with that owns keys, and which keys one that owns rows.
// Included behind what reads the tiles: compilers lay shared memory out in the order in which it is asked for, and an
// address in what lies first is a register shorter (by ACO, of tile's kernels).
#ifndef TESSERA_ATTENTION_CORE_GROUP_RANGE_GLSL
#define TESSERA_ATTENTION_CORE_GROUP_RANGE_GLSL
#include "attention/core/gradients.glsl"

shared int range[2];
// Rows or keys [range[0], range[1]) are all that this group has to do with; empty at first.
void clear_range() {
  if (item == 0u) {
    range[0] = INDEX_MAX;
    range[1] = 0;
  }
  barrier();
}

// The query rows that may see keys [first_key, end_key).
#if POLICY
void find_rows(int first_key) {
  clear_range();
  const int q_len = int(args.core.q_len);
  const uint rows = args.policy.rows + batch * args.core.q_len;
  int first = INDEX_MAX, end = 0;
  for (int row = int(item); row < q_len; row += int(WG_X)) {
    const ivec4 entry = policy_rows[rows + uint(row)];
    if (entry.x < end_key && entry.y > first_key) {
      first = min(first, row);
      end = row + 1;
    }
  }
  if (end > 0) {
    atomicMin(range[0], first);
    atomicMax(range[1], end);
  }
  barrier();
}
#else
void find_rows(int first_key) {
  if (item == 0u) {
    range[0] = max(first_key - args.core.band_high, 0);
    range[1] = min(end_key - args.core.band_low, int(args.core.q_len));
  }
  barrier();
}
#endif

// The keys that rows [first_row, end_row) may see.
#if POLICY
void find_keys(int first_row) {
  clear_range();
  const uint rows = args.policy.rows + batch * args.core.q_len;
  for (int row = first_row + int(item); row < end_row; row += int(WG_X)) {
    const ivec4 entry = policy_rows[rows + uint(row)];
    if (entry.x < entry.y) {
      atomicMin(range[0], entry.x);
      atomicMax(range[1], entry.y);
    }
  }
  barrier();
}
#else
void find_keys(int first_row) {
  if (item == 0u) {
    range[0] = max(first_row + args.core.band_low, 0);
    range[1] = min(end_row + args.core.band_high, int(args.core.kv_len));
  }
  barrier();
}
#endif

#endif  // TESSERA_ATTENTION_CORE_GROUP_RANGE_GLSL
