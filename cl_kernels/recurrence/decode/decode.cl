// SPDX-License-Identifier: Apache-2.0
// What     One token of a recurrence: state = decay * state + key value^T, output = scale state^T query.
// Who      A work-group owns 4 WG_X columns of the state of one sequence and head: an item ROWS key dims of four columns.
// Memory   The states once each way, all of an item's loads ahead of what is done with them; query, key and decays once
//          for each tile of columns.
// Numerics Float. The decays are added up before exp is taken of them; outputs are sums over key dims, items in order.
// Assumes  Operands below 2^31 elements, dims, offsets and strides that are multiples of 4 elements; key_dim is
//          WG_Y ROWS.
#include "lib/typed.clh"
#include "operations/recurrence_core/args.h"

#define KEY_DIM (WG_Y * ROWS)
#define ITEMS (WG_X * WG_Y)
#define HAS(feature) ((args.features & (feature)) != 0u)
#define ROW(rows) (args.rows.offset + sequence * args.rows.batch + head * args.rows.head)
#define STATE(states) (args.states.offset + sequence * args.states.sequence + head * args.states.head + column)
#define LOAD_ONE(from, at, shift) load_typed_steps(from, at, 0, 1, args.types >> (shift) & 3u).x

KERNEL void recurrence_decode(const global void* restrict query_elements, const global void* restrict key_elements,
                              const global void* restrict value_elements, const global void* restrict g_elements,
                              const global void* restrict gamma_elements, const global void* restrict gk_elements,
                              const global float* initial_elements, global void* restrict output_elements,
                              global float* final_elements, const struct RecurArgs args) {
  // Of key dims: queries, keys, and the factors of states, of which those of large decays are taken in two halves.
  local float4 rows[KEY_DIM];
  local float4 shares[ITEMS];
  const uint lane = (uint)get_local_id(0), part = (uint)get_local_id(1), item = part * WG_X + lane;
  const uint tiles = (args.value_dim + 4 * WG_X - 1) / (4 * WG_X);
  const uint group = (uint)get_group_id(1) * (uint)get_num_groups(0) + (uint)get_group_id(0);
  const uint head = group / tiles % args.heads, sequence = group / tiles / args.heads;
  const uint column = (group % tiles * WG_X + lane) * 4;
  const bool exists = sequence < args.sequences, present = exists && column < args.value_dim;

  float4 state[ROWS];
  UNROLL for (uint r = 0; r < ROWS; ++r) state[r] = (float4)(0.0f);
  if (HAS(RECUR_INITIAL) && present) {
    const global float* from = initial_elements + STATE(initial_state) + part * args.initial_state.row;
    UNROLL for (uint r = 0; r < ROWS; ++r) state[r] = *(const global float4*)(from + r * WG_Y * args.initial_state.row);
  }
  float4 value = (float4)(0.0f);
  if (present) value = load_typed_vector(value_elements, ROW(value) + column, args.types >> RECUR_TYPE_ROWS & 3u);

  if (exists) {
    float of_head = (float)head * args.slope;
    if (HAS(RECUR_GAMMA)) of_head += LOAD_ONE(gamma_elements, args.gamma_offset + head * args.gamma_stride, RECUR_TYPE_GAMMA);
    if (HAS(RECUR_GATE)) of_head += LOAD_ONE(g_elements, ROW(g), RECUR_TYPE_G);
    for (uint k = item; k < KEY_DIM; k += ITEMS) {
      float decay = of_head;
      if (HAS(RECUR_KEY_GATE)) decay += LOAD_ONE(g_elements, ROW(g) + k, RECUR_TYPE_G);
      if (HAS(RECUR_GK)) decay += LOAD_ONE(gk_elements, ROW(gk) + k, RECUR_TYPE_GK);
      float first = decay < -104.0f ? 0.0f : exp(decay), rest = 1.0f;
      if (decay > RECUR_MOST_DECAY) first = rest = exp(isinf(decay) ? decay : fmin(0.5f * decay, RECUR_LARGEST_SHARE));
      rows[k] = (float4)(LOAD_ONE(query_elements, ROW(query) + k, RECUR_TYPE_ROWS),
                         LOAD_ONE(key_elements, ROW(key) + k, RECUR_TYPE_ROWS), first, rest);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  float4 sum = (float4)(0.0f);
  if (present) {
    global float* to = final_elements + STATE(final_state) + part * args.final_state.row;
    UNROLL for (uint r = 0; r < ROWS; ++r) {
      const float4 row = rows[r * WG_Y + part];
      state[r] *= row.s2;
      state[r] *= row.s3;
      state[r] += value * row.s1;
      sum += state[r] * row.s0;
      if (HAS(RECUR_FINAL)) *(global float4*)(to + r * WG_Y * args.final_state.row) = state[r];
    }
  }
  shares[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (part == 0 && present) {
    UNROLL for (uint other = 1; other < WG_Y; ++other) sum += shares[other * WG_X + lane];
    store_typed_vector(sum * args.scale, output_elements, ROW(result) + column, args.types >> RECUR_TYPE_ROWS & 3u);
  }
}
