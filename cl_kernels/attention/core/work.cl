// SPDX-License-Identifier: Apache-2.0
// What     The work list of packed sequences: tiles of rows that are of one sequence, and the keys that they see.
// Who      One work-group. Item i takes sequences i, i + WG_X, …; of each round, it then makes tiles i, i + WG_X, ….
// Memory   cum_seqlens_q once, the table of rows once, 32 bytes written for each tile.
// Numerics Whole numbers. The tiles are in the order of their rows, and every row is of one of them, whatever
//          cum_seqlens says, but those of sequences of fewer or more rows than asked for: a sequence begins at the largest offset up to its own, the first one at row 0, and the last
//          one ends at the last row. Of offsets that do not decrease, attention/core/rows takes rows alike.
// Assumes  Lengths below 2^30; the table of rows is there.
//
//   Two scans tell each sequence its place: the largest offset up to here, and how many tiles end up to here. A tile then
//   finds its sequence among those of the round.
#include "lib/prelude.clh"
#include "operations/attention_core/core/work.h"

#define LOCAL_ID ((int)get_local_id(0))
#define ARGS(name) (args.name)
#define CU_Q(n) cu_q[args.rows.cu_q_offset + (uint)(n)*args.rows.cu_q_stride]
#define TABLE(row) scratch[args.rows.rows + (uint)(row)]
#define LIST(n) scratch[args.list + (uint)(n)]
#define BEGINS(turn, item) begins[turn][item]
#define BEHIND behind
#define ENDS(turn, item) ends[turn][item]
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)

KERNEL void attention_work(global int4* restrict scratch, const global int* restrict cu_q,
                           const struct AttentionWorkArgs args) {
  local int begins[2][WG_X];  // rows of a kv head
  local int behind;           // where the sequence behind the round's last one begins
  local int ends[2][WG_X];    // tiles of the round up to each sequence
#include "operations/attention_core/core/work_list.h"
}
