// SPDX-License-Identifier: Apache-2.0
// What     The work list of packed sequences: tiles of rows that are of one sequence, and the keys that they see.
// Who      One work-group. Item i takes rows i, i + WG_X, …; then tiles i, i + WG_X, ….
// Memory   The table of rows once, cum_seqlens_q by binary search for each row, 32 bytes written for each tile.
// Numerics Whole numbers. The tiles are in the order of their rows, and every row is of one of them, whatever
//          cum_seqlens says: a row is of the sequence that attention/core/rows takes it for.
// Assumes  Lengths below 2^30; the table of rows is there.
//
//   A tile begins where a sequence does, and every `tile` rows from there on. Two scans tell each row its place: the
//   latest row at which a sequence began, and how many tiles begin up to here.
#include "lib/prelude.clh"
#include "operations/attention_core/work.h"

#define CU_Q(n) (cu_q[a.rows.cu_q_offset + (n) * a.rows.cu_q_stride])

// The last sequence that begins at `row` or before.
INLINE int sequence_of(const global int* cu_q, const struct AttentionWorkArgs a, int row) {
  int sequence = 0, last = (int)a.rows.sequences;
  while (last - sequence > 1) {
    const int middle = (sequence + last) / 2;
    if (CU_Q(middle) <= row) {
      sequence = middle;
    } else {
      last = middle;
    }
  }
  return sequence;
}

KERNEL void attention_work(global int4* restrict scratch, const global int* restrict cu_q,
                           const struct AttentionWorkArgs a) {
  local int latest[2][WG_X];
  local int count[2][WG_X];
  const int item = get_local_id(0), rows = (int)(a.rows.q_len * a.pack);
  global int4* list = scratch + a.list;
  int begun = 0, tiles = 0;  // before the rows of this round
  for (int first = 0; first < rows; first += WG_X) {
    const int row = first + item;
    const int sequence = sequence_of(cu_q, a, min(row, rows - 1) / (int)a.pack);
    const bool begins =
        row < rows && (row == 0 || sequence != sequence_of(cu_q, a, (min(row, rows - 1) - 1) / (int)a.pack));
    int from = 0;
    latest[0][item] = begins ? row : begun;
    for (int step = 1; step < WG_X; step *= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      latest[1 - from][item] = max(latest[from][item], item >= step ? latest[from][max(item - step, 0)] : 0);
      from = 1 - from;
    }
    const int start = latest[from][item];
    const bool is_tile = row < rows && (row - start) % (int)a.tile == 0;
    int to = 0;
    count[0][item] = is_tile ? 1 : 0;
    for (int step = 1; step < WG_X; step *= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      count[1 - to][item] = count[to][item] + (item >= step ? count[to][max(item - step, 0)] : 0);
      to = 1 - to;
    }
    if (is_tile) list[1 + 2 * (tiles + count[to][item] - 1)] = (int4)(sequence, row, 0, 0);
    barrier(CLK_LOCAL_MEM_FENCE);
    begun = latest[from][WG_X - 1];
    tiles += count[to][WG_X - 1];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  barrier(CLK_GLOBAL_MEM_FENCE);
  if (item == 0) list[0] = (int4)(tiles, 0, 0, 0);
  for (int tile = item; tile < tiles; tile += WG_X) {
    const int begin = list[1 + 2 * tile].s1, end = tile + 1 < tiles ? list[3 + 2 * tile].s1 : rows;
    int first_key = INDEX_MAX, end_key = 0;
    for (int row = begin / (int)a.pack; row <= (end - 1) / (int)a.pack; ++row) {
      const int4 entry = scratch[a.rows.rows + row];
      if (entry.s0 >= entry.s1) continue;
      first_key = min(first_key, entry.s0);
      end_key = max(end_key, entry.s1);
    }
    first_key = min(first_key, end_key);
    global int* to = (global int*)(list + 1 + 2 * tile);
    to[2] = end - begin;
    to[3] = first_key;
    list[2 + 2 * tile] = (int4)(end_key - first_key, 0, 0, 0);
  }
}
