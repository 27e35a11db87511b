// SPDX-License-Identifier: Apache-2.0
// Work of kernels that share out the keys of few query rows, and how they leave what they found. The shader declares the
// arguments (attention/core/forward_call.glsl), and at SCRATCH_BINDING partials, o and log_sum_exp.
//
// Row r of a kv head is query row r / pack of its query head r % pack.
#ifndef TESSERA_ATTENTION_CORE_FEW_ROWS_GLSL
#define TESSERA_ATTENTION_CORE_FEW_ROWS_GLSL
#include "operations/attention_core/core/combine.h"
#if POLICY
#include "attention/core/work.glsl"
#endif

uint batch, kv_head, split, sequence;
uint tile_first, tile_end;  // rows of the kv head

uint query_row(uint row) { return row / CALL.pack; }
uint query_head(uint row) { return kv_head * CALL.group + row % CALL.pack; }
uint query_at(uint row) {
  return CALL.q_offset + batch * CALL.q_stride_batch + query_head(row) * CALL.q_stride_head +
         query_row(row) * CALL.q_stride_row;
}

// What group (x, y, z) of (tiles of `rows` rows x splits) x kv heads x batch works on; false beyond the work list.
bool take_tile(uint rows) {
  uint slot = gl_WorkGroupID.x;
  kv_head = gl_WorkGroupID.y;
  batch = gl_WorkGroupID.z;
  sequence = batch;
  const uint tiles = gl_NumWorkGroups.x / CALL.splits;
#if POLICY
  // All heads of a sequence before the next one: they lie side by side in memory.
  const bool listed = (CALL_FEATURES & POLICY_WORK) != 0u;
  if (listed) {
    const uint number = kv_head * gl_NumWorkGroups.x + slot;
    slot = number / gl_NumWorkGroups.y;
    kv_head = number % gl_NumWorkGroups.y;
  }
#endif
  split = slot / tiles;
  tile_first = slot % tiles * rows;
  tile_end = min(tile_first + rows, CALL.q_len * CALL.pack);
#if POLICY
  if (listed) {
    const Tile tile = listed_tile(RULE(map), slot % tiles);
    tile_first = tile.first;
    tile_end = tile.end;
    sequence = tile.sequence;
  }
#endif
  return tile_first < tile_end;
}

// Keys [first, end) are seen by some row, [common_first, common_end) by all of them.
struct Interval {
  int first, end, common_first, common_end;
};

Interval interval_of_rows() {
  Interval at = Interval(INDEX_MAX, 0, 0, INDEX_MAX);
  for (uint row = query_row(tile_first); row <= query_row(tile_end - 1u); ++row) {
#if POLICY
    const ivec4 entry = ROW_ENTRY(RULE(rows) + batch * CORE(q_len) + row);
    const int first = entry.x, end = entry.y;
#else
    const int first = max(int(row) + CALL.band_low, 0), end = min(int(row) + 1 + CALL.band_high, int(CALL.kv_len));
#endif
    at.common_first = max(at.common_first, first);
    at.common_end = min(at.common_end, end);
#if PAGED
    if (PAGED_HIDES(entry.w)) at.common_end = 0;
#endif
    if (first >= end) continue;
    at.first = min(at.first, first);
    at.end = max(at.end, end);
  }
  at.first = min(at.first, at.end);
  return at;
}

// The keys of this split: whole steps from key `origin` on, but for the last. Depends on nothing but the rows and the number
// of splits.
Interval share_of(Interval at, int origin, uint step) {
  const uint steps = (uint(at.end - origin) + step - 1u) / step;
  const uint share = steps / CALL.splits, longer = steps % CALL.splits;  // so many splits have a step more
  at.first = max(at.first, origin + int((split * share + min(split, longer)) * step));
  at.end = min(at.end, origin + int(((split + 1u) * share + min(split + 1u, longer)) * step));
  return at;
}

// What a score depends on beside its key.
#if POLICY
#define ScoredRow RowPolicy
#else
struct ScoredRow {
  int first, end;
};
#endif

// Rows past the last one see nothing.
ScoredRow scored_row(uint row) {
  const uint at = min(row, tile_end - 1u);
#if POLICY
  ScoredRow scored = policy_row(batch, query_head(at), query_row(at));
#else
  ScoredRow scored = ScoredRow(max(int(query_row(at)) + CALL.band_low, 0),
                               min(int(query_row(at)) + 1 + CALL.band_high, int(CALL.kv_len)));
#endif
  if (row >= tile_end) scored.end = scored.first;
  return scored;
}

// A column of what the split's keys gave a row: the sum of exp2(score - largest) value, and `all` of the weights alone.
void store_result(uint tile_row, uint column, float result, float largest, float all) {
  const uint row = query_row(tile_row), head = query_head(tile_row);
  if (CALL.splits > 1u) {
    const uint lines = gl_NumWorkGroups.z * CALL.heads * CALL.q_len;
    const uint line = split * lines + (batch * CALL.heads + head) * CALL.q_len + row;
    partials[CALL.partials + line * VALUE_DIM + column] = result;
    const uint statistics = CALL.partials + CALL.splits * lines * VALUE_DIM + 2u * line;
    if (column == 0u) {
      partials[statistics] = largest;
      partials[statistics + 1u] = all;
    }
  } else {
    vec2 end = vec2(largest, all);
    bool normalize = true, far = false;
#if POLICY
    end = policy_sinks(head, end.x, end.y);
    normalize = (CALL_FEATURES & POLICY_UNNORMALIZED) == 0u;
    far = (CALL_FEATURES & POLICY_FAR) != 0u;
#endif
    const vec2 closed = row_result(largest, end.x, end.y, normalize, far, uintBitsToFloat(0xff800000u));
    const uint to = CALL.o_offset + batch * CALL.o_stride_batch + head * CALL.o_stride_head + row * CALL.o_stride_row;
    o[to + column] = store_scalar(result * closed.x);
    if (CALL.write_lse != 0u && column == 0u)
      log_sum_exp[CALL.lse_offset + batch * CALL.lse_stride_batch + head * CALL.lse_stride_head + row] = closed.y;
  }
}

#endif  // TESSERA_ATTENTION_CORE_FEW_ROWS_GLSL
