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
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/attention_core/core/work.h"

layout(std430, binding = 0) coherent buffer Scratch { ivec4 scratch[]; };
layout(std430, binding = 1) readonly buffer CuQ { int cu_q[]; };
PUSH_ARGS(AttentionWorkArgs);

#define CU_Q(n) (cu_q[args.rows.cu_q_offset + uint(n) * args.rows.cu_q_stride])
#define LIST(n) scratch[args.list + uint(n)]

shared int latest[2][WG_X];
shared int count[2][WG_X];

// The last sequence that begins at `row` or before.
int sequence_of(int row) {
  int sequence = 0, last = int(args.rows.sequences);
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

void main() {
  const int item = int(gl_LocalInvocationID.x), items = int(WG_X);
  const int rows = int(args.rows.q_len * args.pack), pack = int(args.pack), tile_rows = int(args.tile);
  int begun = 0, tiles = 0;  // before the rows of this round
  for (int first = 0; first < rows; first += items) {
    const int row = first + item, own = min(row, rows - 1);
    const int sequence = sequence_of(own / pack);
    const bool begins = row < rows && (row == 0 || sequence != sequence_of((own - 1) / pack));
    int from = 0;
    latest[0][item] = begins ? row : begun;
    for (int step = 1; step < items; step *= 2) {
      barrier();
      latest[1 - from][item] = max(latest[from][item], item >= step ? latest[from][max(item - step, 0)] : 0);
      from = 1 - from;
    }
    const int start = latest[from][item];
    const bool is_tile = row < rows && (row - start) % tile_rows == 0;
    int to = 0;
    count[0][item] = is_tile ? 1 : 0;
    for (int step = 1; step < items; step *= 2) {
      barrier();
      count[1 - to][item] = count[to][item] + (item >= step ? count[to][max(item - step, 0)] : 0);
      to = 1 - to;
    }
    if (is_tile) LIST(1 + 2 * (tiles + count[to][item] - 1)) = ivec4(sequence, row, 0, 0);
    barrier();
    begun = latest[from][items - 1];
    tiles += count[to][items - 1];
    barrier();
  }
  memoryBarrierBuffer();
  barrier();
  if (item == 0) LIST(0) = ivec4(tiles, 0, 0, 0);
  for (int tile = item; tile < tiles; tile += items) {
    const int begin = LIST(1 + 2 * tile).y, end = tile + 1 < tiles ? LIST(3 + 2 * tile).y : rows;
    int first_key = INDEX_MAX, end_key = 0;
    for (int row = begin / pack; row <= (end - 1) / pack; ++row) {
      const ivec4 entry = scratch[args.rows.rows + uint(row)];
      if (entry.x >= entry.y) continue;
      first_key = min(first_key, entry.x);
      end_key = max(end_key, entry.y);
    }
    first_key = min(first_key, end_key);
    // The row of the next tile is read by another item, which does not read what is written here.
    LIST(1 + 2 * tile).z = end - begin;
    LIST(1 + 2 * tile).w = first_key;
    LIST(2 + 2 * tile) = ivec4(end_key - first_key, 0, 0, 0);
  }
}
