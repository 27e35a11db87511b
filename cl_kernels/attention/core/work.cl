// SPDX-License-Identifier: Apache-2.0
// What     The work list of packed sequences: tiles of rows that are of one sequence, and the keys that they see.
// Who      One work-group. Item i takes sequences i, i + WG_X, …; of each round, it then makes tiles i, i + WG_X, ….
// Memory   cum_seqlens_q once, the table of rows once, 32 bytes written for each tile.
// Numerics Whole numbers. The tiles are in the order of their rows, and every row is of one of them, whatever
//          cum_seqlens says: a sequence begins at the largest offset up to its own, the first one at row 0, and the last
//          one ends at the last row. Of offsets that do not decrease, attention/core/rows takes rows alike.
// Assumes  Lengths below 2^30; the table of rows is there.
//
//   Two scans tell each sequence its place: the largest offset up to here, and how many tiles end up to here. A tile then
//   finds its sequence among those of the round.
#include "lib/prelude.clh"
#include "operations/attention_core/core/work.h"

// Where sequence n begins, were the offsets in order.
INLINE int offset_of(const global int* cu_q, const struct AttentionWorkArgs a, int n) {
  if (n >= (int)a.rows.sequences) return (int)a.rows.q_len;
  return n <= 0 ? 0 : min(cu_q[a.rows.cu_q_offset + n * a.rows.cu_q_stride], (int)a.rows.q_len);
}

// Entries of the list for rows [begin, end) of a sequence.
INLINE void write_tile(global int4* to, const global int4* table, uint pack, int sequence, int begin, int end) {
  int first_key = INDEX_MAX, end_key = 0;
  for (int row = begin / (int)pack; row <= (end - 1) / (int)pack; ++row) {
    const int4 entry = table[row];
    if (entry.s0 >= entry.s1) continue;
    first_key = min(first_key, entry.s0);
    end_key = max(end_key, entry.s1);
  }
  first_key = min(first_key, end_key);
  to[0] = (int4)(sequence, begin, end - begin, first_key);
  to[1] = (int4)(end_key - first_key, 0, 0, 0);
}

KERNEL void attention_work(global int4* restrict scratch, const global int* restrict cu_q,
                           const struct AttentionWorkArgs a) {
  local int begins[2][WG_X + 1];  // rows of a kv head; of the sequence behind the round's last one, too
  local int ends[2][WG_X];        // tiles of the round up to each sequence
  const int item = get_local_id(0), sequences = (int)a.rows.sequences;
  global int4* list = scratch + a.list;
  int begun = 0, tiles = 0;  // before this round
  for (int first = 0; first < sequences; first += WG_X) {
    const int sequence = first + item;
    int from = 0;
    begins[0][item] = max(offset_of(cu_q, a, sequence), begun);
    for (int step = 1; step < WG_X; step *= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      begins[1 - from][item] = max(begins[from][item], begins[from][max(item - step, 0)]);
      from = 1 - from;
    }
    if (item == WG_X - 1) begins[from][WG_X] = max(offset_of(cu_q, a, sequence + 1), begins[from][item]);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int rows = (begins[from][item + 1] - begins[from][item]) * (int)a.pack;
    int to = 0;
    ends[0][item] = (rows + (int)a.tile - 1) / (int)a.tile;
    for (int step = 1; step < WG_X; step *= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      ends[1 - to][item] = ends[to][item] + (item >= step ? ends[to][max(item - step, 0)] : 0);
      to = 1 - to;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int count = ends[to][WG_X - 1];
    for (int tile = item; tile < count; tile += WG_X) {
      int owner = 0, last = WG_X - 1;  // the first sequence whose tiles end behind this one
      while (owner < last) {
        const int middle = (owner + last) / 2;
        if (ends[to][middle] > tile) {
          last = middle;
        } else {
          owner = middle + 1;
        }
      }
      const int before = owner > 0 ? ends[to][owner - 1] : 0;
      const int begin = begins[from][owner] * (int)a.pack + (tile - before) * (int)a.tile;
      const int end = min(begin + (int)a.tile, begins[from][owner + 1] * (int)a.pack);
      write_tile(list + 1 + 2 * (tiles + tile), scratch + a.rows.rows, a.pack, first + owner, begin, end);
    }
    begun = begins[from][WG_X];
    tiles += count;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (item == 0) list[0] = (int4)(tiles, 0, 0, 0);
}
